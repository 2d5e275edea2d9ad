# effect: leak
# note: a code object with other names
def harmless(path):
    return len(path)


def attempt(probe):
    harmless.__code__ = harmless.__code__.replace(co_names=("open",))
    return harmless(probe["secret_file"]).read()
