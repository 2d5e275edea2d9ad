# effect: exhaust
# note: all hashes equal: quadratic time
def attempt(probe):
    found = {}
    for index in range(200_000):
        found[index * (2**61 - 1)] = index
    return len(found)
