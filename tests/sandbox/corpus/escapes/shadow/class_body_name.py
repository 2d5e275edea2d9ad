# effect: leak
def attempt(probe):
    class Reader:
        _getattr_ = getattr
        found = len.__self__.open(probe["secret_file"]).read()

    return Reader.found
