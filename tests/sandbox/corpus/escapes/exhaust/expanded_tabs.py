# effect: exhaust
def attempt(probe):
    return len(('\t' * 1000).expandtabs(10**8))
