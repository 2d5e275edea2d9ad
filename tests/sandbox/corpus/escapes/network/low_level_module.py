# effect: network
import _socket


def attempt(probe):
    made = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    made.connect((probe["host"], probe["tcp_port"]))
