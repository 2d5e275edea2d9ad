# effect: write
import os


def attempt(probe):
    os.symlink(probe["secret_file"], probe["write_file"])
