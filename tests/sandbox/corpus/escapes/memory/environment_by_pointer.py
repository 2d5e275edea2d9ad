# effect: leak
# note: no file is opened: the pointer environ of the C library
import ctypes


def attempt(probe):
    environ = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    found, index = [], 0
    while environ[index]:
        found.append(environ[index])
        index += 1
    return found
