# effect: leak
def attempt(probe):
    return __import__("os").environ[probe["env"]]
