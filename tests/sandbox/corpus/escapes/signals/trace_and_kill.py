# effect: signal
# note: a tracer whose end is the end of the traced
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
    LIBC.ptrace.restype = ctypes.c_long
    long, pointer = ctypes.c_long, ctypes.c_void_p
    LIBC.ptrace(long(0x4206), long(probe["victim"]), pointer(0), pointer(0x100000))
