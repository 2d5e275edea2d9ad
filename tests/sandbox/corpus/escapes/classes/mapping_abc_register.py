# effect: state
# note: a builtin type joins an abstract class for all
import collections.abc


def attempt(probe):
    collections.abc.Mapping.register(int)


def check(probe):
    return "escaped" if isinstance(1, collections.abc.Mapping) else "clean"
