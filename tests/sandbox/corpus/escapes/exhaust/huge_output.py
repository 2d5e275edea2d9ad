# effect: exhaust
def attempt(probe):
    return bytes(20 * 1024 * 1024)
