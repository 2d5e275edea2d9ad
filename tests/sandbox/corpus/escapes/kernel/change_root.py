# effect: escaped
# note: needs: user namespaces
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

    if syscall(272, 97, 0x10000000) != 0:
        return ctypes.get_errno()
    os.chroot(probe["folder"])
    return "escaped" if len(os.listdir("/")) == 1 else "none"
