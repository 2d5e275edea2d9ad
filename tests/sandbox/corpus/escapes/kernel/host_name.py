# effect: escaped
# note: needs: user namespaces; in a namespace of its own only
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

    if syscall(272, 97, 0x14000000) != 0:
        return ctypes.get_errno()
    LIBC.sethostname(b"anpd-test", ctypes.c_size_t(9))
    return "escaped" if socket.gethostname() == "anpd-test" else "none"
