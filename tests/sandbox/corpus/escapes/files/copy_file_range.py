# effect: write
import os


def attempt(probe):
    source = os.open(probe["secret_file"], os.O_RDONLY)
    target = os.open(probe["write_file"], os.O_WRONLY | os.O_CREAT)
    os.copy_file_range(source, target, 100)
