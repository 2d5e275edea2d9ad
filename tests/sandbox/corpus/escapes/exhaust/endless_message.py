# effect: exhaust
# note: the text of the exception never ends
class Endless(Exception):
    def __str__(self):
        while True:
            pass


def attempt(probe):
    raise Endless
