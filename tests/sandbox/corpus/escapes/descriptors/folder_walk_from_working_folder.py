# effect: leak
# note: the working folder as a way in
import os


def attempt(probe):
    for entry in os.scandir("."):
        if entry.is_dir():
            found = os.listdir(entry.path)
            if any("anpd-secret" in name for name in found):
                return found
