# effect: state
import json


def attempt(probe):
    first, *_write_ = 1, 2
    json.dumps = lambda value: "polluted"


def check(probe):
    return "escaped" if json.dumps(1) == "polluted" else "clean"
