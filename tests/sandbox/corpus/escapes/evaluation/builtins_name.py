# effect: leak
def attempt(probe):
    names = __builtins__ if type(__builtins__) is dict else vars(__builtins__)
    return names["open"](probe["secret_file"]).read()
