# effect: leak
import subprocess


def attempt(probe):
    return subprocess.getoutput(f"cat '{probe['secret_file']}'")
