# effect: leak
import functools


def attempt(probe):
    opener = functools.reduce(getattr, ["__self__", "open"], len)
    return opener(probe["secret_file"]).read()
