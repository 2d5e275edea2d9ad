# effect: state
# note: a trace function for all that follows
import sys


def attempt(probe):
    sys.setprofile(lambda *args: None)


def check(probe):
    return "escaped" if sys.getprofile() is not None else "clean"
