# effect: channel
# note: a lone surrogate in a text
import os


def attempt(probe):
    head = b'{"value": {"id": 2, "value": "\\ud800"}, "bytes": []}'
    body = len(head).to_bytes(4, "big") + head
    os.write(3, len(body).to_bytes(4, "big") + body)
