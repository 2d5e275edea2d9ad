# effect: exhaust
# note: suspended frames pile up
def attempt(probe):
    kept = []
    while True:
        made = (x for x in [bytes(10_000)])
        kept.append((made, next(made)))
