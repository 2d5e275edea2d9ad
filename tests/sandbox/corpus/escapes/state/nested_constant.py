# effect: state
# note: a table inside an allowed module
import string


def attempt(probe):
    string.ascii_letters = "polluted"


def check(probe):
    return "escaped" if string.ascii_letters == "polluted" else "clean"
