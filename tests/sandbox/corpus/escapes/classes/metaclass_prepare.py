# effect: leak
# note: the namespace of a class body is our own mapping
class Names(dict):
    def __missing__(self, name):
        if name == "reader":
            return print.__self__.open
        raise KeyError(name)


class Meta(type):
    @classmethod
    def __prepare__(cls, name, bases, **kwargs):
        return Names()


def attempt(probe):
    class Body(metaclass=Meta):
        found = reader(probe["secret_file"]).read()

    return Body.found
