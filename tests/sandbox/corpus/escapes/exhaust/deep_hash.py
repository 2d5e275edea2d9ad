# effect: exhaust
# note: hashing has no recursion limit of its own
def attempt(probe):
    value = ()
    for _ in range(10**6):
        value = (value,)
    return hash(value)
