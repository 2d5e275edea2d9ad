# effect: state
# note: by the module's own dictionary
import json


def attempt(probe):
    vars(json).update(loads=lambda text: "polluted")


def check(probe):
    return "escaped" if json.loads("1") == "polluted" else "clean"
