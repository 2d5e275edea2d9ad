# effect: signal
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

    long, pointer, pid = ctypes.c_long, ctypes.c_void_p, probe["victim"]
    LIBC.ptrace.restype = ctypes.c_long
    if LIBC.ptrace(long(16), long(pid), pointer(0), pointer(0)) == 0:
        os.waitpid(pid, 0)
        LIBC.ptrace(long(17), long(pid), pointer(0), pointer(9))
