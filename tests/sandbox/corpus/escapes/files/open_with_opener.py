# effect: leak
# note: the opener makes the descriptor
import os


def attempt(probe):
    opener = lambda path, flags: os.open(probe["secret_file"], os.O_RDONLY)
    return open("anything", opener=opener).read()
