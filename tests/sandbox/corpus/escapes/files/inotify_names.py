# effect: leak
# note: the kernel tells the names of files that change
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

    watch = LIBC.inotify_init()
    LIBC.inotify_add_watch(watch, probe["folder"].encode(), 0xFFF)
    for entry in os.scandir(probe["folder"]):
        os.utime(entry.path)
    return os.read(watch, 4096)
