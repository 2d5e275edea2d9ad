# effect: leak
# note: code that runs by subscription
class Reader:
    def __class_getitem__(cls, path):
        return open(path).read()


def attempt(probe):
    return Reader[probe["secret_file"]]
