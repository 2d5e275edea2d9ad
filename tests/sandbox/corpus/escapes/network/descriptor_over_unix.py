# effect: network
# note: a descriptor handed out of the process
import array
import os
import socket


def attempt(probe):
    made = socket.socket(socket.AF_UNIX)
    made.connect(probe["unix_path"])
    fd = os.open("/dev/null", os.O_RDONLY)
    kind = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))
    made.sendmsg([b"x"], [kind])
