# effect: channel
import socket


def attempt(probe):
    socket.socket(fileno=3).shutdown(socket.SHUT_RDWR)
