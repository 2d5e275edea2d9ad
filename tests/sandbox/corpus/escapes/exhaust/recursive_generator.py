# effect: exhaust
# note: each level yields from the next
def walk(depth):
    yield depth
    yield from walk(depth + 1)


def attempt(probe):
    return sum(walk(0))
