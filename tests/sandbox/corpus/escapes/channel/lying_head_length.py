# effect: channel
# note: a head that is longer than its frame
import os


def attempt(probe):
    body = b"\x7f\xff\xff\xff" + b"{}"
    os.write(3, len(body).to_bytes(4, "big") + body)
