# effect: state
# note: an enumeration calls `__init__` of whatever its `__new__` returned
import json
from enum import Enum


def attempt(probe):
    class Encoders(Enum):
        def __new__(cls, value):
            return json.JSONEncoder

        ONE = json.JSONEncoder

    assert Encoders


def check(probe):
    class Readers(Enum):
        def __new__(cls, value):
            return json.JSONEncoder

        ONE = json.JSONDecoder

    # A member that has a value already keeps it.
    return "escaped" if Readers(json.JSONEncoder) is json.JSONEncoder else "clean"
