# effect: exhaust
# note: a short text that is a huge number
import decimal


def attempt(probe):
    return int(decimal.Decimal('1e999999999'))
