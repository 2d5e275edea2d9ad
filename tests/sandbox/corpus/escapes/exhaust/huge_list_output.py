# effect: exhaust
# note: many small values
def attempt(probe):
    return [0] * 8_000_000
