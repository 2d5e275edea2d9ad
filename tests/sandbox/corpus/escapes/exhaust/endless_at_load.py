# effect: exhaust
# note: while the module is loaded, not when it is called
while True:
    pass


def attempt(probe):
    return 0
