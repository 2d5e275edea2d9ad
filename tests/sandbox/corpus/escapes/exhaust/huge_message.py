# effect: exhaust
def attempt(probe):
    raise ValueError('x' * (20 * 1024 * 1024))
