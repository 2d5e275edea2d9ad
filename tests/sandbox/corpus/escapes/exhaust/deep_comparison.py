# effect: exhaust
# note: recursion inside C
def attempt(probe):
    one, other = [], []
    for _ in range(10**5):
        one, other = [one], [other]
    return one == other
