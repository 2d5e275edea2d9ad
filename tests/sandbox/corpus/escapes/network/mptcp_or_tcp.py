# effect: network
# note: another protocol number for a stream
import socket


def attempt(probe):
    try:
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    except OSError:
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.connect((probe["host"], probe["tcp_port"]))
