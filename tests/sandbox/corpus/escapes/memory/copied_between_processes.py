# effect: escaped
# note: process_vm_readv, tried on itself
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

    one, other = ctypes.create_string_buffer(b"copied"), ctypes.create_string_buffer(7)
    local = (ctypes.c_uint64 * 2)(ctypes.addressof(other), 6)
    remote = (ctypes.c_uint64 * 2)(ctypes.addressof(one), 6)
    syscall(310, 270, os.getpid(), local, 1, remote, 1, 0)
    return "escaped" if other.value == b"copied" else "none"
