# effect: exhaust
# note: a chain of C iterators, each inside the next
def attempt(probe):
    value = iter([1])
    for _ in range(10**6):
        value = map(int, value)
    return list(value)
