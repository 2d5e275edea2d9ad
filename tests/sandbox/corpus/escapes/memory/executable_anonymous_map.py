# effect: escaped
# note: machine code of its own, run
import ctypes
import mmap
import platform


def attempt(probe):
    code = {
        "x86_64": b"\xb8\x07\x00\x00\x00\xc3",
        "aarch64": b"\xe0\x00\x80\x52\xc0\x03\x5f\xd6",
    }[platform.machine()]
    rights = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    memory = mmap.mmap(-1, 4096, prot=rights)
    memory.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    return "escaped" if ctypes.CFUNCTYPE(ctypes.c_int)(address)() == 7 else "none"
