# effect: escaped
import os


def attempt(probe):
    os.umask(0o123)
    return "escaped" if os.umask(0o022) == 0o123 else "none"
