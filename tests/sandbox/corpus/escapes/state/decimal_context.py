# effect: state
# note: the precision of everybody
import decimal


def attempt(probe):
    decimal.getcontext().prec = 3


def check(probe):
    return "escaped" if decimal.getcontext().prec == 3 else "clean"
