# effect: exhaust
# note: after the answer
class Endless:
    def __del__(self):
        while True:
            pass


def attempt(probe):
    Endless()
