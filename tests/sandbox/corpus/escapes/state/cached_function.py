# effect: state
# note: an answer put into a shared cache
import functools
import json


def attempt(probe):
    json.loads = functools.lru_cache(json.loads)
    json.loads("[]").append("polluted")


def check(probe):
    return "escaped" if json.loads("[]") == ["polluted"] else "clean"
