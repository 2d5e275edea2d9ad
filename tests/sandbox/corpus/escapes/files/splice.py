# effect: leak
import os


def attempt(probe):
    reading, writing = os.pipe()
    os.splice(os.open(probe["secret_file"], os.O_RDONLY), writing, 100)
    return os.read(reading, 100)
