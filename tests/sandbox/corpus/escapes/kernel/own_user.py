# effect: escaped
# note: any change of user, even to the same
import os


def attempt(probe):
    os.setresuid(os.getuid(), os.getuid(), os.getuid())
    return "escaped"
