# effect: channel
# note: the serve loop's own object, among all objects
import gc
import socket


def attempt(probe):
    for found in gc.get_objects():
        if isinstance(found, socket.socket) and found.fileno() == 3:
            found.sendall(b"garbage")
            return
    socket.socket(fileno=3).sendall(b"garbage")
