# effect: write
# note: the process becomes another program
import os


def attempt(probe):
    os.execv("/bin/sh", ["sh", "-c", f": > '{probe['write_file']}'"])
