# effect: channel
# note: NaN and Infinity, which JSON does not have
import os


def attempt(probe):
    head = b'{"value": {"id": NaN, "value": Infinity}, "bytes": []}'
    body = len(head).to_bytes(4, "big") + head
    os.write(3, len(body).to_bytes(4, "big") + body)
