# effect: leak
# note: what the process was started with, though os.environ is empty
import os


def attempt(probe):
    os.environ.clear()
    return open("/proc/self/environ").read()
