# effect: escaped
# note: perf_event_open of the process itself
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
    import struct

    what = struct.pack("IIQQQQQ", 1, 112, 1, 0, 0, 0, 0b1100001).ljust(112, b"\0")
    made = syscall(298, 241, what, 0, -1, -1, 0)
    return "escaped" if made >= 0 else ctypes.get_errno()
