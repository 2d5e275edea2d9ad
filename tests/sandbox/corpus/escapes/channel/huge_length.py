# effect: channel
# note: a length of four gigabytes
import os


def attempt(probe):
    os.write(3, b"\xff\xff\xff\xff")
