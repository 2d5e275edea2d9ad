# effect: leak
# note: an ImportError leads to the module's folder
import json


def attempt(probe):
    try:
        from json import nope
    except ImportError as exc:
        base = exc.path.rsplit("/", 1)[0]
        return (json.__loader__.get_data(probe["secret_file"]), base)
