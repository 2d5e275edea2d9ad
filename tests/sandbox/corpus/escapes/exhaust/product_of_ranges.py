# effect: exhaust
import itertools


def attempt(probe):
    return len(list(itertools.product(range(1000), repeat=5)))
