# effect: leak
# note: a name whose letters are harmless when looked at
class Name(str):
    def __getitem__(self, index):
        return "a"

    def __contains__(self, other):
        return False

    def endswith(self, *args):
        return False

    def startswith(self, *args):
        return False


def attempt(probe):
    return getattr(len, Name("__self__")).open(probe["secret_file"]).read()
