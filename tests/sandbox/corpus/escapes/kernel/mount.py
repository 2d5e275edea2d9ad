# effect: escaped
# note: needs: user namespaces; a file system over the folder, in a namespace
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
    if syscall(272, 97, 0x10020000) != 0:
        return ctypes.get_errno()
    LIBC.mount(b"none", b"/", None, 0x44000, None)
    LIBC.mount(b"none", probe["folder"].encode(), b"tmpfs", 0, None)
    return "escaped" if probe["folder"] in open("/proc/self/mounts").read() else "none"
