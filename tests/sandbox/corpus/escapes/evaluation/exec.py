# effect: leak
def attempt(probe):
    scope = {"path": probe["secret_file"]}
    exec("found = open(path).read()", scope)
    return scope["found"]
