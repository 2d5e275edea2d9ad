# effect: state
# note: a default of a shared function
import json


def attempt(probe):
    json.dumps.__kwdefaults__["sort_keys"] = True


def check(probe):
    return "escaped" if json.dumps({"b": 1, "a": 2}).startswith('{"a"') else "clean"
