# effect: state
# note: the context that new ones copy
import decimal


def attempt(probe):
    decimal.DefaultContext.prec = 4


def check(probe):
    return "escaped" if decimal.DefaultContext.prec == 4 else "clean"
