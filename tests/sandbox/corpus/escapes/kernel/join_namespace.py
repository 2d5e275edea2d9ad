# effect: escaped
# note: setns into the namespace that it is in; needs: root
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

    where = os.open("/proc/self/ns/uts", os.O_RDONLY)
    return "escaped" if syscall(308, 268, where, 0) == 0 else ctypes.get_errno()
