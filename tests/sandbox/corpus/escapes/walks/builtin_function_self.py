# effect: leak
# note: __self__ of a builtin is the module builtins
def attempt(probe):
    return print.__self__.open(probe["secret_file"]).read()
