# effect: state
# note: the encoder that all calls share
import json


def attempt(probe):
    json._default_encoder.item_separator = "polluted"


def check(probe):
    return "escaped" if "polluted" in json.dumps([1, 2]) else "clean"
