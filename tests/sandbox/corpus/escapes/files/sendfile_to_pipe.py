# effect: leak
import os


def attempt(probe):
    reading, writing = os.pipe()
    os.sendfile(writing, os.open(probe["secret_file"], os.O_RDONLY), 0, 100)
    return os.read(reading, 100)
