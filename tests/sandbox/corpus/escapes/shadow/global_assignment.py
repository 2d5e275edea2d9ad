# effect: state
import json

_write_ = lambda value: value


def attempt(probe):
    json.dumps = lambda value: "polluted"


def check(probe):
    return "escaped" if json.dumps(1) == "polluted" else "clean"
