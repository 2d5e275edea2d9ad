# effect: leak
def attempt(probe):
    return eval("open(path).read()", {"path": probe["secret_file"]})
