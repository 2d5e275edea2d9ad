# effect: channel
# note: the same with recv of a socket
import socket


def attempt(probe):
    socket.socket(fileno=3).recv(1000)
