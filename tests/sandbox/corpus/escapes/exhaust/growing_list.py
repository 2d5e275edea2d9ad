# effect: exhaust
def attempt(probe):
    kept = []
    while True:
        kept.append(bytes(10**6))
