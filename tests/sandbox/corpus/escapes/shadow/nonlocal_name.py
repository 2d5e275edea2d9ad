# effect: state
import json


def attempt(probe):
    _write_ = None

    def inner():
        nonlocal _write_
        _write_ = lambda value: value
        json.dumps = lambda value: "polluted"

    inner()


def check(probe):
    return "escaped" if json.dumps(1) == "polluted" else "clean"
