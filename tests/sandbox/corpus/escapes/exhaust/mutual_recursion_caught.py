# effect: exhaust
# note: each level catches and goes on
def attempt(probe):
    try:
        attempt(probe)
    except RecursionError:
        pass
    while True:
        pass
