# effect: exhaust
import math


def attempt(probe):
    return math.comb(10**8, 5 * 10**7) % 10
