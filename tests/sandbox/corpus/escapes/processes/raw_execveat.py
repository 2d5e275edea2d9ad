# effect: write
# note: execveat, which filters of execve miss
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
    command = f": > '{probe['write_file']}'".encode()
    arguments = (ctypes.c_char_p * 4)(b"sh", b"-c", command, None)
    syscall(322, 281, -100, b"/bin/sh", arguments, (ctypes.c_char_p * 1)(None), 0)
