# effect: state
import json


class _write_:
    def __new__(cls, value):
        return value


def attempt(probe):
    json.dumps = lambda value: "polluted"


def check(probe):
    return "escaped" if json.dumps(1) == "polluted" else "clean"
