# effect: exhaust
# note: a C function over an iterator without end
import itertools


def attempt(probe):
    return sum(itertools.repeat(1))
