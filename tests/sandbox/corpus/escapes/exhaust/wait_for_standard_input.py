# effect: exhaust
# note: a read that nobody answers
import os


def attempt(probe):
    reading, writing = os.pipe()
    os.read(reading, 1)
    return writing
