# effect: escaped
# note: modify_ldt, an old door of the processor; x86 only
import ctypes


def attempt(probe):
    libc = ctypes.CDLL(None, use_errno=True)
    space = ctypes.create_string_buffer(64)
    done = libc.syscall(ctypes.c_long(154), ctypes.c_long(0), space, ctypes.c_long(64))
    return "escaped" if done >= 0 else ctypes.get_errno()
