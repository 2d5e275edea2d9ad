# effect: exhaust
class Endless:
    def __enter__(self):
        return self

    def __exit__(self, *args):
        while True:
            pass


def attempt(probe):
    with Endless():
        1 / 0
