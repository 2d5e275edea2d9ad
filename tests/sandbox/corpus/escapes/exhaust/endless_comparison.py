# effect: exhaust
class Endless:
    def __lt__(self, other):
        while True:
            pass


def attempt(probe):
    return sorted([Endless(), Endless()])
