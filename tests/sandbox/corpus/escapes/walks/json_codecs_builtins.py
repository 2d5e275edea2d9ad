# effect: leak
import json


def attempt(probe):
    return json.codecs.builtins.open(probe["secret_file"]).read()
