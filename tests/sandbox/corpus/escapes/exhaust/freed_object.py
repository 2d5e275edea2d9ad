# effect: exhaust
# note: one reference too few
import ctypes


def attempt(probe):
    value = [1, 2, 3]
    for _ in range(10):
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(None))
        ctypes.c_ssize_t.from_address(id(value) + 8).value = 0
    return value
