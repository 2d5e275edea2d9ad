# effect: leak
def attempt(probe):
    builtins = attempt.__globals__["__builtins__"]
    opener = builtins["open"] if type(builtins) is dict else builtins.open
    return opener(probe["secret_file"]).read()
