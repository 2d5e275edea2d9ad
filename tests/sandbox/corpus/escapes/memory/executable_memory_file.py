# effect: escaped
# note: one memory, mapped writable and executable
import ctypes
import mmap
import os
import platform


def attempt(probe):
    code = {
        "x86_64": b"\xb8\x07\x00\x00\x00\xc3",
        "aarch64": b"\xe0\x00\x80\x52\xc0\x03\x5f\xd6",
    }[platform.machine()]
    made = os.memfd_create("x")
    os.write(made, code.ljust(4096, b"\0"))
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    address = libc.mmap(None, ctypes.c_size_t(4096), 5, 2, made, ctypes.c_long(0))
    return "escaped" if ctypes.CFUNCTYPE(ctypes.c_int)(address)() == 7 else "none"
