# effect: channel
# note: an answer to a request that never was
import json
import os


def attempt(probe):
    head = json.dumps({"value": {"id": 999_999, "value": "forged"}, "bytes": []}).encode()
    body = len(head).to_bytes(4, "big") + head
    os.write(3, len(body).to_bytes(4, "big") + body)
