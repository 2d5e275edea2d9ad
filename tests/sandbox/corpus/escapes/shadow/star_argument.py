# effect: leak
# note: a catch-all keyword argument named as a guard
def read(path, **_getattr_):
    return len.__self__.open(path).read()


def attempt(probe):
    return read(probe["secret_file"], fake=1)
