# effect: channel
# note: garbage after the answer, from a destructor at the end
import os
import sys


class Last:
    def __del__(self):
        os.write(3, b"garbage")


def attempt(probe):
    kept = Last()
    sys.getrefcount(kept)
    return None
