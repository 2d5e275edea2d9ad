# effect: channel
# note: a number with a hundred thousand digits
import os


def attempt(probe):
    head = b'{"value": {"id": 2, "value": ' + b"9" * 100_000 + b'}, "bytes": []}'
    body = len(head).to_bytes(4, "big") + head
    os.write(3, len(body).to_bytes(4, "big") + body)
