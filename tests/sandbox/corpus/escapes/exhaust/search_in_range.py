# effect: exhaust
def attempt(probe):
    return 0.5 in range(10**12)
