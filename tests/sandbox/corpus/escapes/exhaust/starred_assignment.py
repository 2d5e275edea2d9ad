# effect: exhaust
import itertools


def attempt(probe):
    first, *rest = itertools.count()
    return first
