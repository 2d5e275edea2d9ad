# effect: state
# note: a builtin for all modules
import builtins


def attempt(probe):
    builtins.sorted = lambda value: "polluted"


def check(probe):
    return "escaped" if sorted([1]) == "polluted" else "clean"
