# effect: leak
import os


def attempt(probe):
    return os.environ.get(probe["env"])
