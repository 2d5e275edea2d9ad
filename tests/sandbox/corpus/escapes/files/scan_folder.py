# effect: leak
import os


def attempt(probe):
    return [entry.name for entry in os.scandir(probe["folder"])]
