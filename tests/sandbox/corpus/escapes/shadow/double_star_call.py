# effect: state
# note: the guard's name arrives as a keyword
import json


def overwrite(target, **names):
    locals().update(names)
    setattr(target, "dumps", lambda value: "polluted")


def attempt(probe):
    overwrite(json, **{"_write_": lambda value: value})


def check(probe):
    return "escaped" if json.dumps(1) == "polluted" else "clean"
