# effect: escaped
import os
import pty


def attempt(probe):
    child, _ = pty.fork()
    if child == 0:
        os._exit(7)
    return "escaped" if os.waitpid(child, 0)[1] >> 8 == 7 else "none"
