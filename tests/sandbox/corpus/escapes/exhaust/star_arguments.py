# effect: exhaust
import itertools


def attempt(probe):
    return max(*itertools.count())
