# effect: state
# note: another module under a known name
import sys


def attempt(probe):
    sys.modules["colorsys"] = "polluted"


def check(probe):
    return "escaped" if __import__("colorsys") == "polluted" else "clean"
