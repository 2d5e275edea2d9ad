# effect: escaped
import os


def attempt(probe):
    one, other = os.openpty()
    return "escaped" if os.isatty(other) else "none"
