# effect: escaped
# note: needs: root
import os


def attempt(probe):
    os.setgroups([0, 1])
    return "escaped" if os.getgroups() == [0, 1] else "none"
