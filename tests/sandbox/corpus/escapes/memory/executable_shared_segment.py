# effect: escaped
# note: System V memory attached with SHM_EXEC
import ctypes
import platform


def attempt(probe):
    code = {
        "x86_64": b"\xb8\x07\x00\x00\x00\xc3",
        "aarch64": b"\xe0\x00\x80\x52\xc0\x03\x5f\xd6",
    }[platform.machine()]
    libc = ctypes.CDLL(None)
    libc.shmat.restype = ctypes.c_void_p
    made = libc.shmget(0, ctypes.c_size_t(4096), 0o1700)
    address = libc.shmat(made, None, 0o100000)
    libc.shmctl(made, 0, None)
    ctypes.memmove(address, code, len(code))
    return "escaped" if ctypes.CFUNCTYPE(ctypes.c_int)(address)() == 7 else "none"
