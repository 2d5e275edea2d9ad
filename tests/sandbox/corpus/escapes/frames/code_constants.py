# effect: leak
# note: running a nested code object with full builtins
def attempt(probe):
    def nested(path):
        return open(path).read()

    code = next(c for c in attempt.__code__.co_consts if hasattr(c, "co_code"))
    scope = {"__builtins__": len.__self__}
    return type(attempt)(code, scope)(probe["secret_file"])
