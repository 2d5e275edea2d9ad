# effect: escaped
# note: memory that other processes can attach
import ctypes


def attempt(probe):
    libc = ctypes.CDLL(None)
    made = libc.shmget(0, ctypes.c_size_t(4096), 0o1600)
    if made >= 0:
        libc.shmctl(made, 0, None)
    return "escaped" if made >= 0 else "none"
