# effect: leak
class Meta(type):
    def __instancecheck__(cls, path):
        cls.found = open(path).read()
        return True


class Kind(metaclass=Meta):
    pass


def attempt(probe):
    isinstance(probe["secret_file"], Kind)
    return Kind.found
