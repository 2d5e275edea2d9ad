# effect: network
import logging.handlers


def attempt(probe):
    made = logging.handlers.DatagramHandler(probe["host"], probe["udp_port"])
    made.send(b"x")
