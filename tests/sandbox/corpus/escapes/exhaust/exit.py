# effect: exhaust
# note: ends the process instead of answering
import os


def attempt(probe):
    os._exit(0)
