# effect: escaped
# note: the names of a file's attributes
import os


def attempt(probe):
    os.listxattr(probe["secret_file"])
    return "escaped"
