# effect: escaped
# note: pthread_create by hand
import ctypes


def attempt(probe):
    libc = ctypes.CDLL(None)
    made, result = ctypes.c_ulong(), ctypes.c_void_p()
    routine = ctypes.cast(libc.getpid, ctypes.c_void_p)
    if libc.pthread_create(ctypes.byref(made), None, routine, None) == 0:
        libc.pthread_join(made, ctypes.byref(result))
        return "escaped" if result.value else "none"
