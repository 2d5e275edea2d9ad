# effect: leak
import json


def attempt(probe):
    return vars(json)["codecs"].open(probe["secret_file"]).read()
