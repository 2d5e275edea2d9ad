# effect: leak
# note: O_PATH, then the link in /proc
import os


def attempt(probe):
    handle = os.open(probe["secret_file"], os.O_PATH)
    return os.read(os.open(f"/proc/self/fd/{handle}", os.O_RDONLY), 100)
