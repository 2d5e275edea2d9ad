# effect: escaped
# note: the system call, past the library
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
    import os

    child = syscall(56, 220, 17, 0, 0, 0, 0)
    if child == 0:
        os._exit(7)
    return "escaped" if child > 0 and os.waitpid(child, 0)[1] >> 8 == 7 else "none"
