# effect: state
# note: `super` with two classes hands out the method unbound
import json


class Encoder(json.JSONEncoder):
    pass


def attempt(probe):
    super(Encoder, Encoder).__init__(json.JSONEncoder, default="polluted")


def check(probe):
    return "escaped" if json.JSONEncoder.default == "polluted" else "clean"
