# effect: write
import os


def attempt(probe):
    os.utime(probe["secret_file"], (1, 1))
