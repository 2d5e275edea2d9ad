# effect: state
# note: the dictionary behind an object that looks closed
import math


def attempt(probe):
    object.__getattribute__(math, "__dict__")["pi"] = 3


def check(probe):
    return "escaped" if math.pi == 3 else "clean"
