# effect: state
# note: an own class hands out the method that it inherits
import json


class Encoder(json.JSONEncoder):
    pass


def attempt(probe):
    Encoder.__init__(json.JSONEncoder, default="polluted")


def check(probe):
    return "escaped" if json.JSONEncoder.default == "polluted" else "clean"
