# effect: state
import os
import time


def attempt(probe):
    os.environ["TZ"] = "XXX-7"
    time.tzset()


def check(probe):
    return "escaped" if time.timezone == -7 * 3600 else "clean"
