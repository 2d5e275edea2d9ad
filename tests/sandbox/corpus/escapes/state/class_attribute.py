# effect: state
# note: a method of a shared class
import json


def attempt(probe):
    json.JSONEncoder.encode = lambda self, value: "polluted"


def check(probe):
    return "escaped" if json.dumps({}, indent=1) == "polluted" else "clean"
