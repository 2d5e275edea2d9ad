# effect: leak
# note: the exception keeps the object that was asked
import json


def attempt(probe):
    try:
        json.nope
    except AttributeError as exc:
        return exc.obj.codecs.open(probe["secret_file"]).read()
