# effect: escaped
import os


def attempt(probe):
    child = os.fork()
    if child == 0:
        os._exit(7)
    return "escaped" if os.waitpid(child, 0)[1] >> 8 == 7 else "none"
