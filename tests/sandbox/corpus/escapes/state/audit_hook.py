# effect: state
# note: never goes away
import sys


def attempt(probe):
    seen = []
    sys.addaudithook(lambda name, args: seen.append(name))
    sys.polluted = seen


def check(probe):
    return "escaped" if bool(getattr(sys, "polluted", None)) else "clean"
