# effect: exhaust
# note: a short text whose fraction is exact
import fractions


def attempt(probe):
    return fractions.Fraction('1e999999999')
