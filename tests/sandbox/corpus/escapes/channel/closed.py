# effect: channel
import os


def attempt(probe):
    os.close(3)
