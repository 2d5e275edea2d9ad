# effect: state
import builtins


def attempt(probe):
    builtins.polluted = True


def check(probe):
    return "escaped" if "polluted" in vars(builtins) else "clean"
