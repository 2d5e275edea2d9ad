# effect: exhaust
def attempt(probe):
    return len([0] * 10**10)
