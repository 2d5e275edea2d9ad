# effect: write
import ctypes


def attempt(probe):
    ctypes.CDLL(None).system(f": > '{probe['write_file']}'".encode())
