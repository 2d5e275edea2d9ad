# effect: exhaust
import itertools


def attempt(probe):
    return [x for x in itertools.count() if x < 0]
