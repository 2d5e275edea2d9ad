# effect: escaped
# note: a file's identity without opening it
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
    handle = (ctypes.c_uint32 * 40)(128)
    mount = ctypes.c_int()
    path = probe["secret_file"].encode()
    done = syscall(303, 264, -100, path, handle, ctypes.byref(mount), 0)
    return "escaped" if done == 0 else ctypes.get_errno()
