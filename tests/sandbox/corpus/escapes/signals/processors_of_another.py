# effect: signal
# note: needs: two processors
import os


def attempt(probe):
    os.sched_setaffinity(probe["victim"], {min(os.sched_getaffinity(0))})
