# effect: signal
# note: the same with the only descriptor that a worker has
import fcntl
import os


def attempt(probe):
    fcntl.fcntl(3, fcntl.F_SETOWN, probe["victim"])
    flags = fcntl.fcntl(3, fcntl.F_GETFL)
    fcntl.fcntl(3, fcntl.F_SETFL, flags | os.O_ASYNC)
    reading, writing = os.pipe()
    fcntl.fcntl(reading, fcntl.F_SETOWN, probe["victim"])
    fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC)
    os.write(writing, b"x")
