# effect: channel
import os


def attempt(probe):
    head = b'{"value": {"id": 2, "value": "\xff\xfe"}, "bytes": []}'
    body = len(head).to_bytes(4, "big") + head
    os.write(3, len(body).to_bytes(4, "big") + body)
