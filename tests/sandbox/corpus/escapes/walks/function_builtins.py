# effect: leak
def attempt(probe):
    return attempt.__builtins__["open"](probe["secret_file"]).read()
