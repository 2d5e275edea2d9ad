# effect: channel
# note: every descriptor there may be
import os


def attempt(probe):
    os.closerange(3, 64)
