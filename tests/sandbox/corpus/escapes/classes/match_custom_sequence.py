# effect: leak
# note: sequence patterns call the methods of registered classes
import collections.abc


class Lazy(collections.abc.Sequence):
    def __init__(self, path):
        self.path = path

    def __len__(self):
        return 1

    def __getitem__(self, index):
        if index:
            raise IndexError
        return open(self.path).read()


def attempt(probe):
    match Lazy(probe["secret_file"]):
        case [text]:
            return text
