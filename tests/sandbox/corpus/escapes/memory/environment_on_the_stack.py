# effect: leak
# note: left above the first frame when os.environ is cleared
import ctypes
import os


def attempt(probe):
    os.environ.clear()
    for line in open("/proc/self/maps"):
        if "[stack]" in line:
            start, end = (int(part, 16) for part in line.split()[0].split("-"))
            found = ctypes.string_at(start, end - start)
            at = found.find(b"anpd-secret-")
            return found[at : at + 60] if at >= 0 else None
