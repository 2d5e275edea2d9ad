# effect: state
# note: the garbage collector
import gc


def attempt(probe):
    gc.disable()


def check(probe):
    return "escaped" if not gc.isenabled() else "clean"
