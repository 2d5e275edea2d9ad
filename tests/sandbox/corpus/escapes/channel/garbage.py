# effect: channel
import os


def attempt(probe):
    os.write(3, os.urandom(1) * 100)
