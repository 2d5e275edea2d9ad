# effect: channel
# note: a serve loop that waits no more
import os


def attempt(probe):
    os.set_blocking(3, False)
