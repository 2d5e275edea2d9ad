# effect: exhaust
def attempt(probe):
    return attempt(probe)
