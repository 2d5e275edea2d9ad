# effect: exhaust
import json


def attempt(probe):
    value = []
    for _ in range(10**5):
        value = [value]
    return json.dumps(value)
