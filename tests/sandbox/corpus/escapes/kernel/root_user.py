# effect: escaped
# note: needs: root
import os


def attempt(probe):
    os.setuid(0)
    return "escaped" if os.getuid() == 0 else "none"
