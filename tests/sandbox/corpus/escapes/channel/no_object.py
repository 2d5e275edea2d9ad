# effect: channel
# note: a frame whose value is a list
import json
import os


def attempt(probe):
    head = json.dumps({"value": [1, 2], "bytes": []}).encode()
    body = len(head).to_bytes(4, "big") + head
    os.write(3, len(body).to_bytes(4, "big") + body)
