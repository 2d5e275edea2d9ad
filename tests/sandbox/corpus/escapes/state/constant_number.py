# effect: state
# note: the value of a small number, through its memory
import ctypes


def attempt(probe):
    place = id(257_001 - 256_983) + 24
    ctypes.c_uint32.from_address(place).value = 19
    


def check(probe):
    return "escaped" if str(sum([9, 9])) == "19" else "clean"
