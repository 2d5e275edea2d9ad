# effect: exhaust
def attempt(probe):
    value = 3
    while True:
        value *= value
