# effect: network
import multiprocessing.connection
import socket


def attempt(probe):
    socket.setdefaulttimeout(0.5)
    multiprocessing.connection.Client((probe["host"], probe["tcp_port"]))
