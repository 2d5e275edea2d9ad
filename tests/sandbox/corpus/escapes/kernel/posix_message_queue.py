# effect: escaped
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

    name = f"anpd-test-{os.getpid()}".encode()
    made = syscall(240, 180, name, 0o102, 0o600, None)
    if made < 0:
        return ctypes.get_errno()
    syscall(241, 181, name)
    return "escaped"
