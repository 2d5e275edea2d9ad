# effect: state
import json


def attempt(probe):
    global _write_
    _write_ = lambda value: value
    json.dumps = lambda value: "polluted"


def check(probe):
    return "escaped" if json.dumps(1) == "polluted" else "clean"
