# effect: state
# note: a context manager of the library that sets any attribute of sys
import contextlib
import sys


class Poison(contextlib._RedirectStream):
    _stream = "byteorder"


def attempt(probe):
    Poison("polluted").__enter__()


def check(probe):
    return "escaped" if sys.byteorder == "polluted" else "clean"
