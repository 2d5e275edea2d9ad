# effect: escaped
# note: a listener of its own
import socket


def attempt(probe):
    made = socket.socket()
    made.bind((probe["host"], 0))
    made.listen()
    socket.create_connection(made.getsockname())
    return "escaped" if made.accept() else "none"
