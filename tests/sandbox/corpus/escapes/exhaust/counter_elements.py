# effect: exhaust
# note: a small dictionary that stands for a long list
import collections


def attempt(probe):
    return sorted(collections.Counter({'a': 10**12}).elements())
