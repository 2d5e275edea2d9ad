# effect: leak
# note: each number duplicated first
import os


def attempt(probe):
    found = []
    for number in range(4, 256):
        try:
            made = os.dup(number)
            found.append(os.pread(made, 100, 0))
            os.close(made)
        except OSError:
            continue
    return found
