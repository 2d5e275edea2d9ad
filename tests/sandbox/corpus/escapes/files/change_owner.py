# effect: write
# note: to the owner that it has: only the change time tells
import os


def attempt(probe):
    os.chown(probe["secret_file"], os.getuid(), os.getgid())
