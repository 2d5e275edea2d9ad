# effect: leak
# note: machine code that opens a file by itself
import ctypes
import mmap
import os


def attempt(probe):
    rights = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    memory = mmap.mmap(-1, 4096, prot=rights)
    if os.uname().machine == "x86_64":
        memory.write(b"\xb8\x02\x00\x00\x00\x0f\x05\xc3")
        path, flags = 0, ctypes.c_long(0)
    else:
        # openat(AT_FDCWD, path, flags): the path comes second.
        memory.write(b"\x08\x07\x80\xd2\x01\x00\x00\xd4\xc0\x03\x5f\xd6")
        path, flags = 1, ctypes.c_long(0)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    run = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long)
    name = ctypes.create_string_buffer(probe["secret_file"].encode())
    place = ctypes.addressof(name)
    arguments = (place, None, 0) if path == 0 else (-100, place, 0)
    return os.read(run(address)(*arguments), 100) if flags is not None else None
