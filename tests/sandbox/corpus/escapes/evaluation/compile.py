# effect: leak
def attempt(probe):
    scope = {"path": probe["secret_file"]}
    code = compile("open(path).read()", "x", "eval")
    return eval(code, scope)
