# effect: channel
# note: nested so deeply that a parser overflows
import os


def attempt(probe):
    head = b'{"value": ' + b"[" * 50_000 + b"]" * 50_000 + b', "bytes": []}'
    body = len(head).to_bytes(4, "big") + head
    os.write(3, len(body).to_bytes(4, "big") + body)
