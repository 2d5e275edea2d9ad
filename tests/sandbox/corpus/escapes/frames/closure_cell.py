# effect: leak
def outer():
    opener = open

    def inner(path):
        return opener(path).read()

    return inner


def attempt(probe):
    return outer().__closure__[0].cell_contents(probe["secret_file"]).read()
