# effect: state
# note: an attribute on an exception of the library
import json


def attempt(probe):
    json.JSONDecodeError.polluted = True


def check(probe):
    return "escaped" if hasattr(json.JSONDecodeError, "polluted") else "clean"
