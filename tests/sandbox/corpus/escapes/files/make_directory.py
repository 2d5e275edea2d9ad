# effect: write
import os


def attempt(probe):
    os.mkdir(probe["write_file"])
