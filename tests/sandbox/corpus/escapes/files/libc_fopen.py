# effect: leak
import ctypes


def attempt(probe):
    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    file = ctypes.c_void_p(libc.fopen(probe["secret_file"].encode(), b"r"))
    if not file:
        return None
    text = ctypes.create_string_buffer(100)
    libc.fgets(text, 100, file)
    return text.value
