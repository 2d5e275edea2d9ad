# effect: leak
# note: a descriptor that the start of the process left open
import os


def attempt(probe):
    found = []
    for number in range(4, 256):
        try:
            found.append(os.pread(number, 100, 0))
        except OSError:
            continue
    return found
