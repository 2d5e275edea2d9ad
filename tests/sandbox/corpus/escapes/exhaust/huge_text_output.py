# effect: exhaust
def attempt(probe):
    return 'x' * (20 * 1024 * 1024)
