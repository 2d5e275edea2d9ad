# effect: channel
# note: half a length, and then the answer
import os


def attempt(probe):
    os.write(3, b"\0")
