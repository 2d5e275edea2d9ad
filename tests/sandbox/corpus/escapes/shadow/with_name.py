# effect: state
import json


class Open:
    def __enter__(self):
        return lambda value: value

    def __exit__(self, *args):
        return False


def attempt(probe):
    with Open() as _write_:
        json.dumps = lambda value: "polluted"
        return str(_write_)


def check(probe):
    return "escaped" if json.dumps(1) == "polluted" else "clean"
