# effect: state
# note: a guard's name as an argument
import json


def fake(value):
    return "polluted"


def overwrite(target, _write_=lambda value: value):
    target.dumps = fake


def attempt(probe):
    overwrite(json)


def check(probe):
    return "escaped" if json.dumps(1) == "polluted" else "clean"
