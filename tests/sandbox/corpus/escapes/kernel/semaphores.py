# effect: escaped
import ctypes


def attempt(probe):
    libc = ctypes.CDLL(None)
    made = libc.semget(0, 1, 0o1600)
    if made >= 0:
        libc.semctl(made, 0, 0)
    return "escaped" if made >= 0 else "none"
