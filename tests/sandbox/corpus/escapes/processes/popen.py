# effect: leak
import os


def attempt(probe):
    return os.popen(f"cat '{probe['secret_file']}'").read()
