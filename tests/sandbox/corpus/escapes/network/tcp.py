# effect: network
import socket


def attempt(probe):
    socket.create_connection((probe["host"], probe["tcp_port"])).sendall(b"x")
