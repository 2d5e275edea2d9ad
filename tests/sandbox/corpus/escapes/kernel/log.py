# effect: escaped
# note: the size of the kernel's log; needs: root where it is restricted
import ctypes


def attempt(probe):
    size = ctypes.CDLL(None).klogctl(10, None, 0)
    return "escaped" if size > 0 else "none"
