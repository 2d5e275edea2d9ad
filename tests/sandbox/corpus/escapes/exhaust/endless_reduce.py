# effect: exhaust
import functools
import itertools


def attempt(probe):
    return functools.reduce(lambda a, b: a, itertools.count())
