# effect: channel
# note: announces a frame and never sends it
import os
import time


def attempt(probe):
    os.write(3, (1000).to_bytes(4, "big") + b"x")
    while True:
        time.monotonic()
