# effect: exhaust
# note: one text, listed many times
def attempt(probe):
    part = 'x' * 1_000_000
    return [part] * 50
