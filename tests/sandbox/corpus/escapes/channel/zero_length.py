# effect: channel
import os


def attempt(probe):
    os.write(3, bytes(4))
