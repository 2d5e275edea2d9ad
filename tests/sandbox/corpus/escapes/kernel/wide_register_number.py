# effect: escaped
# note: a number whose upper half a filter may overlook
import ctypes
import platform


def attempt(probe):
    libc = ctypes.CDLL(None)
    number = {"x86_64": 63, "aarch64": 160}[platform.machine()]
    space = ctypes.create_string_buffer(400)
    libc.syscall(ctypes.c_ulong(number | 0xFFFFFFFF00000000), space)
    return "escaped" if space.value == b"Linux" else "none"
