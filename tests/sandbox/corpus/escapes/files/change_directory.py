# effect: leak
import os


def attempt(probe):
    os.chdir(probe["folder"])
    return os.listdir()
