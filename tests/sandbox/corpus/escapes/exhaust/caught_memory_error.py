# effect: exhaust
# note: the limit is met again and again
def attempt(probe):
    while True:
        try:
            [0] * 10**10
        except MemoryError:
            continue
