# effect: exhaust
import os


def attempt(probe):
    os.abort()
