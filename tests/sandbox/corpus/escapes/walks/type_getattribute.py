# effect: leak
def attempt(probe):
    for cls in type.__getattribute__(object, "__subclasses__")():
        if cls.__name__ == "_wrap_close":
            return cls.__init__.__globals__["environ"][probe["env"]]
