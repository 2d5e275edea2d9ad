# effect: exhaust
import heapq
import itertools


def attempt(probe):
    return list(heapq.merge(itertools.count(), itertools.count()))
