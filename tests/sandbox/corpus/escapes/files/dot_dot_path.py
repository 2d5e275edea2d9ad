# effect: leak
def attempt(probe):
    return open(probe["folder"] + "/../secret").read()
