# effect: state
import json


def _write_(value):
    return value


def attempt(probe):
    json.dumps = lambda value: "polluted"


def check(probe):
    return "escaped" if json.dumps(1) == "polluted" else "clean"
