# effect: state
import json


def overwrite(target, *, _write_=lambda value: value):
    target.dumps = lambda value: "polluted"


def attempt(probe):
    overwrite(json)


def check(probe):
    return "escaped" if json.dumps(1) == "polluted" else "clean"
