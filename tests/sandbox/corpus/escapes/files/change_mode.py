# effect: write
import os


def attempt(probe):
    os.chmod(probe["secret_file"], 0o600)
