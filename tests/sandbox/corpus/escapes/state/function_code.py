# effect: state
# note: the code of a shared function
import json


def attempt(probe):
    json.loads.__code__ = (lambda text, **kwargs: "polluted").__code__


def check(probe):
    return "escaped" if json.loads("1") == "polluted" else "clean"
