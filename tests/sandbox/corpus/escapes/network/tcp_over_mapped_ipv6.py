# effect: network
# note: an IPv6 socket that speaks IPv4
import socket


def attempt(probe):
    made = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    made.connect(("::ffff:" + probe["host"], probe["tcp_port"]))
