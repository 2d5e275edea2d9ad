# effect: state
# note: the library makes an initialiser that sets attributes of any first argument
import json
from dataclasses import dataclass


@dataclass
class Settings:
    default: str


def attempt(probe):
    Settings.__init__(json.JSONEncoder, "polluted")


def check(probe):
    return "escaped" if json.JSONEncoder.default == "polluted" else "clean"
