# effect: write
# note: renameat2, which filters of rename miss
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
    (at, flags) = (-100, 0)
    syscall(
        316, 276, at, probe["secret_file"].encode(), at, probe["write_file"].encode(), flags
    )
