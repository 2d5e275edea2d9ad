# effect: leak
# note: code that runs when a class is made
class Base:
    def __init_subclass__(cls, path, **kwargs):
        cls.found = open(path).read()


def attempt(probe):
    class Child(Base, path=probe["secret_file"]):
        pass

    return Child.found
