# effect: write
import os


def attempt(probe):
    os.rename(probe["secret_file"], probe["write_file"])
