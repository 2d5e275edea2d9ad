# effect: escaped
# note: mprotect after the code is written
import platform

import ctypes
import platform

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long


def syscall(x86_64, aarch64, *args):
    number = {"x86_64": x86_64, "aarch64": aarch64}[platform.machine()]
    long = ctypes.c_long
    args = [long(a) if type(a) is int else a for a in args]
    return LIBC.syscall(long(number), *args)

def attempt(probe):
    import mmap

    code = {
        "x86_64": b"\xb8\x07\x00\x00\x00\xc3",
        "aarch64": b"\xe0\x00\x80\x52\xc0\x03\x5f\xd6",
    }[platform.machine()]
    memory = mmap.mmap(-1, 4096)
    memory.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    if syscall(10, 226, address, 4096, 5) == 0:
        return "escaped" if ctypes.CFUNCTYPE(ctypes.c_int)(address)() == 7 else "none"
