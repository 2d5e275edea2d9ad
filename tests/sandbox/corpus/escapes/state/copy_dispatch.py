# effect: state
# note: how copy treats a type of everybody
import copy
import copyreg


def attempt(probe):
    copyreg.pickle(type(copy), lambda module: (str, ("polluted",)))


def check(probe):
    return "escaped" if copy.copy(copy) == "polluted" else "clean"
