# effect: channel
# note: takes the next request away from the serve loop
import os


def attempt(probe):
    os.read(3, 1000)
