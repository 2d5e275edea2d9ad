# effect: write
# note: O_TMPFILE gets its name by a link from /proc
import ctypes
import os


def attempt(probe):
    made = os.open(probe["folder"], os.O_TMPFILE | os.O_WRONLY)
    source = f"/proc/self/fd/{made}".encode()
    ctypes.CDLL(None).linkat(-100, source, -100, probe["write_file"].encode(), 0x400)
