# effect: escaped
# note: learns the size of a file
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
    found = (ctypes.c_uint64 * 32)()
    path = probe["secret_file"].encode()
    done = syscall(332, 291, -100, path, 0, 0x7FF, found)
    return "escaped" if done == 0 and found[5] > 0 else ctypes.get_errno()
