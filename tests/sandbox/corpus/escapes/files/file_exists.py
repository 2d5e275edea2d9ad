# effect: escaped
# note: tells whether a file is there
import os


def attempt(probe):
    return "escaped" if os.access(probe["secret_file"], os.F_OK) else "none"
