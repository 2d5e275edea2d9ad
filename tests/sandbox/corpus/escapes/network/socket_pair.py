# effect: escaped
import socket


def attempt(probe):
    one, other = socket.socketpair()
    one.send(b"x")
    return "escaped" if other.recv(1) == b"x" else "none"
