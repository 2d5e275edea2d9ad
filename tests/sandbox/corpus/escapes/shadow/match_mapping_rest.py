# effect: state
import json


def attempt(probe):
    match {"a": 1}:
        case {**_write_}:
            json.dumps = lambda value: "polluted"


def check(probe):
    return "escaped" if json.dumps(1) == "polluted" else "clean"
