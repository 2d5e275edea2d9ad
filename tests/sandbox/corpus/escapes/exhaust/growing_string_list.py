# effect: exhaust
def attempt(probe):
    return len(','.join(map(str, range(10**9))))
