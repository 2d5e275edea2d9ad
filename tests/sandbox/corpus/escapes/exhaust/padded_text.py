# effect: exhaust
def attempt(probe):
    return len('x'.ljust(10**11))
