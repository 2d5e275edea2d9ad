# effect: exhaust
import time


def attempt(probe):
    time.sleep(10**6)
