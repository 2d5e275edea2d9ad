# effect: exhaust
# note: a cache without bound
import functools
import itertools


def attempt(probe):
    @functools.lru_cache(None)
    def keep(value):
        return bytes(1000)


    for index in itertools.count():
        keep(index)
