# effect: escaped
# note: prlimit64 on itself
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
    limit = (ctypes.c_uint64 * 2)()
    syscall(302, 261, 0, 7, None, limit)
    before, hard = limit
    wanted = (ctypes.c_uint64 * 2)(hard, hard)
    done = syscall(302, 261, 0, 7, wanted, None)
    return "escaped" if done == 0 and hard > before else "none"
