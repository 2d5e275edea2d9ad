# effect: state
import json
import math as _write_


def attempt(probe):
    json.dumps = lambda value: "polluted"
    return _write_.pi


def check(probe):
    return "escaped" if json.dumps(1) == "polluted" else "clean"
