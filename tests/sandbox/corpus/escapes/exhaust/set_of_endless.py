# effect: exhaust
import itertools


def attempt(probe):
    return len(set(itertools.count()))
