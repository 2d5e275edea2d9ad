# effect: exhaust
def attempt(probe):
    value = b'x'
    while True:
        value += value
