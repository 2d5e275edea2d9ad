# effect: write
# note: binding a socket makes a file
import socket


def attempt(probe):
    socket.socket(socket.AF_UNIX).bind(probe["write_file"])
