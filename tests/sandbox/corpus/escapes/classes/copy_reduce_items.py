# effect: state
# note: copy stores the items that a reduction lists
import copy
import json


class Poison:
    def __reduce_ex__(self, protocol):
        items = iter([("dumps", lambda value: "polluted")])
        return (lambda: vars(json)), (), None, None, items


def attempt(probe):
    copy.copy(Poison())


def check(probe):
    return "escaped" if json.dumps(1) == "polluted" else "clean"
