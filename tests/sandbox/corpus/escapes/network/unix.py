# effect: network
import socket


def attempt(probe):
    socket.socket(socket.AF_UNIX).connect(probe["unix_path"])
