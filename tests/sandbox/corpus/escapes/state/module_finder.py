# effect: state
# note: a finder asked before all others
import sys


def attempt(probe):
    sys.meta_path.insert(0, "polluted")


def check(probe):
    return "escaped" if "polluted" in sys.meta_path else "clean"
