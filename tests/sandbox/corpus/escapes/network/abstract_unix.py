# effect: network
# note: a name that no file permission guards
import socket


def attempt(probe):
    socket.socket(socket.AF_UNIX).connect(probe["abstract"])
