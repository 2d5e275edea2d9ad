# effect: leak
# note: the path of a descriptor by its link in /proc
import os


def attempt(probe):
    (name,) = os.listdir(probe["folder"])
    made = os.open(probe["folder"] + "/" + name, os.O_RDONLY)
    return os.readlink(f"/proc/self/fd/{made}")
