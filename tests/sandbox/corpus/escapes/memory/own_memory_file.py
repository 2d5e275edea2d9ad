# effect: escaped
# note: writes its own read-only memory through /proc
import ctypes
import mmap


def attempt(probe):
    memory = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    ctypes.CDLL(None).mprotect(ctypes.c_void_p(address), ctypes.c_size_t(4096), 1)
    with open("/proc/self/mem", "r+b", buffering=0) as file:
        file.seek(address)
        file.write(b"changed")
    return "escaped" if memory[:7] == b"changed" else "none"
