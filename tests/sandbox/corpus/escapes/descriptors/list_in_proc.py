# effect: leak
import os


def attempt(probe):
    found = []
    for number in os.listdir("/proc/self/fd"):
        if not 3 < int(number) < 256:
            continue
        try:
            found.append(open(f"/proc/self/fd/{number}").read(100))
        except OSError:
            continue
    return found
