# effect: exhaust
def attempt(probe):
    value = ()
    for _ in range(10**5):
        value = (value,)
    return len(repr(value))
