# effect: state
import sys


def attempt(probe):
    sys.setrecursionlimit(12_345)


def check(probe):
    return "escaped" if sys.getrecursionlimit() == 12_345 else "clean"
