# effect: exhaust
import itertools


def attempt(probe):
    return sum(1 for _ in itertools.permutations(range(20)))
