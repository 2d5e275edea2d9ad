# effect: exhaust
import itertools


def attempt(probe):
    return list(itertools.count())
