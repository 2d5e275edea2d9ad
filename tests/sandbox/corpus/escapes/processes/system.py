# effect: write
import os


def attempt(probe):
    os.system(f": > '{probe['write_file']}'")
