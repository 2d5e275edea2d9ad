# effect: exhaust
# note: each level lists the last one ten times
def attempt(probe):
    value = ['x' * 10]
    for _ in range(7):
        value = [value] * 10
    return value
