# effect: signal
# note: rt_tgsigqueueinfo with a forged sender
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

    what = struct.pack("iiiiii", 15, 0, -1, 0, 1, 0).ljust(128, b"\0")
    pid = probe["victim"]
    syscall(297, 240, pid, pid, 15, what)
