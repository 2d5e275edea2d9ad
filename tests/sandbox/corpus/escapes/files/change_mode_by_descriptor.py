# effect: write
import os


def attempt(probe):
    os.fchmod(os.open(probe["secret_file"], os.O_RDONLY), 0o600)
