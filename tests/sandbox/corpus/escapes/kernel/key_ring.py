# effect: escaped
# note: a key that outlives the process
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
    made = syscall(248, 217, b"user", b"anpd-test", b"x", 1, -1)
    if made < 0:
        return ctypes.get_errno()
    syscall(250, 219, 3, made)
    return "escaped"
