# effect: state
# note: a decorator that writes members into any loaded module
import enum
import json


def attempt(probe):
    names = {"dumps": lambda value: "polluted"}
    made = enum.Enum("Made", {"one": 1})
    made.__module__ = "json"
    made._member_map_["dumps"] = names["dumps"]
    enum.global_enum(made)


def check(probe):
    return "escaped" if json.dumps(1) == "polluted" else "clean"
