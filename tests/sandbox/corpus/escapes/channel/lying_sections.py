# effect: channel
# note: a table of bytes that points outside
import json
import os


def attempt(probe):
    table = [[["value"], 1 << 40], [["no", "such", "place"], -1]]
    head = json.dumps({"value": {"id": 2, "value": None}, "bytes": table}).encode()
    body = len(head).to_bytes(4, "big") + head
    os.write(3, len(body).to_bytes(4, "big") + body)
