# effect: state
# note: the setter of the base class
import math


def attempt(probe):
    type(math).__setattr__(math, "tau", 6)


def check(probe):
    return "escaped" if math.tau == 6 else "clean"
