# effect: leak
# note: the unguarded look-up as a plain function
def attempt(probe):
    inside = object.__getattribute__(attempt, "__globals__")
    builtins = inside["__builtins__"]
    opener = builtins["open"] if type(builtins) is dict else builtins.open
    return opener(probe["secret_file"]).read()
