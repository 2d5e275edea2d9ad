# effect: network
# note: sendmmsg instead of sendto
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

    made = syscall(41, 198, 2, 2, 0)
    address = struct.pack("=H", 2) + struct.pack("!H", probe["udp_port"])
    address = ctypes.create_string_buffer(address + socket.inet_aton(probe["host"]) + bytes(8), 16)
    data = ctypes.create_string_buffer(b"x", 1)
    vector = (ctypes.c_uint64 * 2)(ctypes.addressof(data), 1)
    message = (ctypes.c_uint64 * 8)(
        ctypes.addressof(address), 16, ctypes.addressof(vector), 1, 0, 0, 0, 0
    )
    syscall(307, 269, made, message, 1, 0)
