# effect: leak
import copy


class Hooked:
    def __init__(self, path):
        self.path = path

    def __deepcopy__(self, seen):
        return open(self.path).read()


def attempt(probe):
    return copy.deepcopy([Hooked(probe["secret_file"])])[0]
