# effect: write
import os


def attempt(probe):
    os.mkfifo(probe["write_file"])
