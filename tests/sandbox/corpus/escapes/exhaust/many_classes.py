# effect: exhaust
# note: each class is a kilobyte and more
def attempt(probe):
    kept = []
    while True:
        kept.append(type('made', (), {}))
