# effect: leak
import os


def attempt(probe):
    return os.read(os.open(probe["secret_file"], os.O_RDONLY), 100)
