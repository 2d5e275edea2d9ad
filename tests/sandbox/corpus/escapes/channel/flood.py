# effect: channel
# note: bytes without end
import os


def attempt(probe):
    while True:
        os.write(3, bytes(65_536))
