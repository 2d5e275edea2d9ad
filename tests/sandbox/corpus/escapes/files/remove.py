# effect: write
import os


def attempt(probe):
    os.unlink(probe["secret_file"])
