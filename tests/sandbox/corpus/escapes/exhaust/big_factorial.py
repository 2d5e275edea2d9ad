# effect: exhaust
import math


def attempt(probe):
    return math.factorial(10**8) % 10
