# effect: exhaust
class Outer:
    def __init__(self, inner):
        self.inner = inner

    def __call__(self):
        return self.inner()


def attempt(probe):
    value = int
    for _ in range(10**6):
        value = Outer(value)
    return value()
