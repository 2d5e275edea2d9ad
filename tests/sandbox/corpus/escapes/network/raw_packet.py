# effect: network
# note: needs: root
import socket
import struct


def attempt(probe):
    made = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    packet = struct.pack("!HHHH", 40_000, probe["udp_port"], 9, 0) + b"x"
    head = struct.pack(
        "!BBHHHBBH4s4s",
        0x45,
        0,
        20 + len(packet),
        0,
        0,
        64,
        17,
        0,
        socket.inet_aton(probe["host"]),
        socket.inet_aton(probe["host"]),
    )
    made.sendto(head + packet, (probe["host"], 0))
