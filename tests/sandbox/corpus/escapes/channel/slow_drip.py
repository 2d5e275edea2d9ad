# effect: channel
# note: a frame that comes a byte at a time
import os
import time


def attempt(probe):
    os.write(3, (10_000).to_bytes(4, "big"))
    while True:
        until = time.monotonic() + 0.02
        while time.monotonic() < until:
            pass
        os.write(3, b"x")
