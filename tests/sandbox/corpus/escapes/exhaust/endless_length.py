# effect: exhaust
# note: a C function that asks without end
class Endless:
    def __getitem__(self, index):
        return index


def attempt(probe):
    return list(Endless())
