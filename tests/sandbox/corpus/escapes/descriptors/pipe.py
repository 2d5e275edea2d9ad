# effect: escaped
import os


def attempt(probe):
    reading, writing = os.pipe()
    os.write(writing, b"x")
    return "escaped" if os.read(reading, 1) == b"x" else "none"
