# effect: state
import sys


def attempt(probe):
    sys.path.insert(0, "/polluted")


def check(probe):
    return "escaped" if "/polluted" in sys.path else "clean"
