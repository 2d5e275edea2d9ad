# effect: leak
# note: the environment as the C library has it
import ctypes


def attempt(probe):
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_char_p
    return libc.getenv(probe["env"].encode())
