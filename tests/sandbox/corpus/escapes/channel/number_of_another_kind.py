# effect: channel
# note: an id that is no number
import json
import os


def attempt(probe):
    for number in (None, True, "2", 2.0, [2], {"id": 2}):
        head = json.dumps({"value": {"id": number, "value": 1}, "bytes": []}).encode()
        body = len(head).to_bytes(4, "big") + head
        os.write(3, len(body).to_bytes(4, "big") + body)
