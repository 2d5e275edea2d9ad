# effect: exhaust
import itertools


def attempt(probe):
    return ''.join(itertools.repeat('x'))
