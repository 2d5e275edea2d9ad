# effect: network
import socket


def attempt(probe):
    made = socket.socket()
    made.setblocking(False)
    made.connect_ex((probe["host"], probe["tcp_port"]))
