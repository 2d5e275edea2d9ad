# effect: state
# note: a function of an allowed module
import json


def attempt(probe):
    json.dumps = lambda value: "polluted"


def check(probe):
    return "escaped" if json.dumps(1) == "polluted" else "clean"
