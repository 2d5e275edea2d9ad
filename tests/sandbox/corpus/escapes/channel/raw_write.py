# effect: channel
# note: by the C library
import ctypes


def attempt(probe):
    ctypes.CDLL(None).write(3, b"garbage!", ctypes.c_size_t(8))
