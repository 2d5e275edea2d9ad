# effect: state
import json

_write_ = 0
del _write_


def attempt(probe):
    json.dumps = lambda value: "polluted"


def check(probe):
    return "escaped" if json.dumps(1) == "polluted" else "clean"
