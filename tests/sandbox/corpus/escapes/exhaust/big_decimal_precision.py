# effect: exhaust
import decimal


def attempt(probe):
    context = decimal.Context(prec=decimal.MAX_PREC)
    return context.divide(1, 3)
