# effect: exhaust
def attempt(probe):
    return len('%99999999999d' % 1)
