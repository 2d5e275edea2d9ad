# effect: exhaust
import collections
import itertools


def attempt(probe):
    return collections.Counter(itertools.count())
