# effect: state
# note: copy writes the attributes that a state names
import copy
import json


def fake(value):
    return "polluted"


class Poison:
    def __reduce_ex__(self, protocol):
        return (lambda: json), (), (None, {"dumps": fake})


def attempt(probe):
    copy.copy(Poison())


def check(probe):
    return "escaped" if json.dumps(1) == "polluted" else "clean"
