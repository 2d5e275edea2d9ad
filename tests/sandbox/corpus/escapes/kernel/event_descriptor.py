# effect: escaped
import os


def attempt(probe):
    made = os.eventfd(1)
    return "escaped" if os.eventfd_read(made) == 1 else "none"
