# effect: state
# note: how long a number may be read
import sys


def attempt(probe):
    sys.set_int_max_str_digits(700)


def check(probe):
    return "escaped" if sys.get_int_max_str_digits() == 700 else "clean"
