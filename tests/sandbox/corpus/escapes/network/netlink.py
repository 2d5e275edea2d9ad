# effect: escaped
# note: reads the interfaces from the kernel
import socket
import struct


def attempt(probe):
    made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    made.send(struct.pack("=IHHII", 17, 18, 0x301, 1, 0) + b"\0")
    return "escaped" if len(made.recv(65_536)) > 100 else "none"
