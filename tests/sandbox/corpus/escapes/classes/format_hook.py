# effect: leak
class Shown:
    def __format__(self, path):
        return open(path).read()


def attempt(probe):
    return f"{Shown():{probe['secret_file']}}"
