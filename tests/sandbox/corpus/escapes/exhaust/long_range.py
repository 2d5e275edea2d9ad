# effect: exhaust
# note: a C loop that no signal handler interrupts
def attempt(probe):
    return sum(range(10**12))
