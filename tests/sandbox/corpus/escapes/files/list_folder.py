# effect: leak
# note: the name of a file is the secret
import os


def attempt(probe):
    return os.listdir(probe["folder"])
