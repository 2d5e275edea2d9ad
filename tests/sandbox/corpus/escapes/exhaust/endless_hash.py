# effect: exhaust
class Endless:
    def __hash__(self):
        while True:
            pass


def attempt(probe):
    return {Endless(): 1}
