# effect: leak
# note: time.__loader__ imports any builtin module
import time


def attempt(probe):
    posix = time.__loader__.load_module("posix")
    file = posix.open(probe["secret_file"], posix.O_RDONLY)
    return posix.read(file, 100)
