# effect: exhaust
def attempt(probe):
    error = None
    for _ in range(10**7):
        made = ValueError()
        made.__context__, error = error, made
    raise error
