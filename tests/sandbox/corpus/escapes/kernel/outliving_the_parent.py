# effect: escaped
# note: clears the signal that comes with the parent's end
import ctypes


def attempt(probe):
    libc = ctypes.CDLL(None)
    now = ctypes.c_int(-1)
    libc.prctl(1, ctypes.c_ulong(0), 0, 0, 0)
    libc.prctl(2, ctypes.byref(now), 0, 0, 0)
    return "escaped" if now.value == 0 else "none"
