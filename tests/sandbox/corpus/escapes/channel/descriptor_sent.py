# effect: channel
# note: a descriptor for the daemon that it did not ask for
import array
import socket


def attempt(probe):
    kind = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))
    socket.socket(fileno=3).sendmsg([b"x"], [kind])
