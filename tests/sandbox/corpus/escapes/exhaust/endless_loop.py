# effect: exhaust
def attempt(probe):
    while True:
        pass
