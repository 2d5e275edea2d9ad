# effect: escaped
# note: takes a processor for itself
import os


def attempt(probe):
    one = {min(os.sched_getaffinity(0))}
    os.sched_setaffinity(0, one)
    return "escaped" if os.sched_getaffinity(0) == one else "none"
