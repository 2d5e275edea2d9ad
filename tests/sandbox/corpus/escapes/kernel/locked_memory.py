# effect: escaped
# note: memory that cannot be swapped out
import ctypes


def attempt(probe):
    space = ctypes.create_string_buffer(8192)
    done = ctypes.CDLL(None).mlock(space, ctypes.c_size_t(4096))
    return "escaped" if done == 0 else "none"
