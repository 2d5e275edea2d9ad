# effect: escaped
# note: the old number where there is one
import ctypes
import os
import platform


def attempt(probe):
    libc = ctypes.CDLL(None)
    child = libc.syscall(57) if platform.machine() == "x86_64" else libc.fork()
    if child == 0:
        os._exit(7)
    return "escaped" if child > 0 and os.waitpid(child, 0)[1] >> 8 == 7 else "none"
