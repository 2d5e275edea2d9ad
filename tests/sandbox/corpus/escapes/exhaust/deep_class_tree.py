# effect: exhaust
# note: isinstance walks nested tuples
def attempt(probe):
    value = (int,)
    for _ in range(10**5):
        value = (value,)
    return isinstance('', value)
