# effect: network
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
    import socket
    import struct

    made = syscall(41, 198, 2, 1, 0)
    address = struct.pack("=H", 2) + struct.pack("!H", probe["tcp_port"])
    address += socket.inet_aton(probe["host"]) + bytes(8)
    syscall(42, 203, made, address, 16)
