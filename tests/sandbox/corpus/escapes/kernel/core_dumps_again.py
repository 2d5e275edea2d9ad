# effect: escaped
# note: dumpable again, so that others may trace it
import ctypes


def attempt(probe):
    libc = ctypes.CDLL(None)
    libc.prctl(4, ctypes.c_ulong(1), 0, 0, 0)
    return "escaped" if libc.prctl(3, 0, 0, 0, 0) == 1 else "none"
