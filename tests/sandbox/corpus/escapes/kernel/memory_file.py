# effect: escaped
import os


def attempt(probe):
    made = os.memfd_create("x")
    os.write(made, b"x")
    return "escaped" if os.fstat(made).st_size == 1 else "none"
