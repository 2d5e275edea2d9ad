# effect: escaped
import ctypes


def attempt(probe):
    libc = ctypes.CDLL(None)
    made = libc.msgget(0, 0o1600)
    if made >= 0:
        libc.msgctl(made, 0, None)
    return "escaped" if made >= 0 else "none"
