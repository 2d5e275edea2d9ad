# effect: escaped
# note: loads machine code from a file
import ctypes


def attempt(probe):
    made = ctypes.CDLL("libresolv.so.2")
    return "escaped" if made.ns_get16(b"\0\7") == 7 else "none"
