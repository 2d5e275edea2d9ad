# effect: exhaust
# note: into a pipe that may have no reader
import sys


def attempt(probe):
    while True:
        sys.stderr.write('x' * 100_000)
