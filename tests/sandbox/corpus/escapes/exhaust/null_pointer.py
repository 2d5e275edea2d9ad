# effect: exhaust
import ctypes


def attempt(probe):
    return ctypes.string_at(8)
