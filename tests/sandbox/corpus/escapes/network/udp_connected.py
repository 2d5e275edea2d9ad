# effect: network
import socket


def attempt(probe):
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.connect((probe["host"], probe["udp_port"]))
    made.send(b"x")
