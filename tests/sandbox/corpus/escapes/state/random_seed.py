# effect: state
# note: the numbers of everybody become known
import random


def attempt(probe):
    random.seed(1)
    random.polluted = random.getstate()


def check(probe):
    return "escaped" if hasattr(random, "polluted") and random.getstate() == random.polluted else "clean"
