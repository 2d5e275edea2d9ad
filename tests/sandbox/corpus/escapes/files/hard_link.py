# effect: write
import os


def attempt(probe):
    os.link(probe["secret_file"], probe["write_file"])
