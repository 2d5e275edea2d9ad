# effect: channel
# note: one byte more than a frame may have
import os


def attempt(probe):
    os.write(3, (16 * 1024 * 1024 + 1).to_bytes(4, "big") + bytes(64))
