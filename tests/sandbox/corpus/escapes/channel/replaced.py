# effect: channel
# note: another file in the place of the channel
import os


def attempt(probe):
    os.dup2(0, 3)
