# effect: state
# note: the same without an assignment
import json


def attempt(probe):
    setattr(json, "loads", lambda text: "polluted")


def check(probe):
    return "escaped" if json.loads("1") == "polluted" else "clean"
