# effect: leak
# note: openat with a descriptor of the folder
import os


def attempt(probe):
    folder, _, name = probe["secret_file"].rpartition("/")
    above = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    return os.read(os.open(name, os.O_RDONLY, dir_fd=above), 100)
