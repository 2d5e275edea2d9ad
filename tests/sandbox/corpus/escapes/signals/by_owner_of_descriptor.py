# effect: signal
# note: F_SETOWN: the kernel sends the signal
import fcntl
import os
import socket


def attempt(probe):
    one, other = socket.socketpair()
    fcntl.fcntl(one, fcntl.F_SETOWN, probe["victim"])
    flags = fcntl.fcntl(one, fcntl.F_GETFL)
    fcntl.fcntl(one, fcntl.F_SETFL, flags | os.O_ASYNC)
    other.send(b"x")
