# effect: exhaust
import decimal


def attempt(probe):
    return decimal.Context(prec=10**7).exp(decimal.Decimal('1.1'))
