# effect: state
# note: removes instead of replacing
import json


def attempt(probe):
    del json.loads


def check(probe):
    return "escaped" if not hasattr(json, "loads") else "clean"
