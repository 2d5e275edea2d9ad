# effect: leak
import subprocess


def attempt(probe):
    return subprocess.check_output(["cat", probe["secret_file"]])
