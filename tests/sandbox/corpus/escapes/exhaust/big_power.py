# effect: exhaust
def attempt(probe):
    return len(str(pow(7, 10**9) % 10))
