# effect: exhaust
import json


def attempt(probe):
    return json.loads('[' * 10**6)
