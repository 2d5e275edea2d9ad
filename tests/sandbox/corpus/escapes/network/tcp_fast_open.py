# effect: network
# note: data with the first packet, no connect
import socket


def attempt(probe):
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.sendto(b"x", socket.MSG_FASTOPEN, (probe["host"], probe["tcp_port"]))
