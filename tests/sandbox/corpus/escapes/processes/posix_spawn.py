# effect: escaped
import os


def attempt(probe):
    child = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 7"], {})
    return "escaped" if os.waitpid(child, 0)[1] >> 8 == 7 else "none"
