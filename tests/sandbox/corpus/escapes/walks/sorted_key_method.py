# effect: leak
# note: sorted calls the unguarded look-up as its key
def attempt(probe):
    names = ["__self__"]
    found = {}
    sorted(names, key=lambda name: found.setdefault(name, len.__getattribute__(name)) and 0)
    return found["__self__"].open(probe["secret_file"]).read()
