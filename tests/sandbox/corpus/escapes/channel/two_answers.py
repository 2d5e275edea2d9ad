# effect: channel
# note: the answer to this and to the next requests
import json
import os


def attempt(probe):
    for number in range(100):
        head = json.dumps({"value": {"id": number, "value": "forged"}, "bytes": []}).encode()
        body = len(head).to_bytes(4, "big") + head
        os.write(3, len(body).to_bytes(4, "big") + body)
