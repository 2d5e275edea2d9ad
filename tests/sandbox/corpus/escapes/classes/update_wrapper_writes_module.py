# effect: state
# note: functools updates a mapping that it finds by name
import functools
import json


class Source:
    pass


def attempt(probe):
    source = Source()
    source.__dict__["__dict__"] = {}
    vars(source)["dumps"] = lambda value: "polluted"
    functools.update_wrapper(json, source, assigned=("dumps",), updated=())


def check(probe):
    return "escaped" if json.dumps(1) == "polluted" else "clean"
