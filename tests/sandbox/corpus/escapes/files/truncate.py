# effect: write
import os


def attempt(probe):
    os.truncate(probe["secret_file"], 0)
