# effect: leak
import json


def attempt(probe):
    return json.codecs.open(probe["secret_file"], "r", "utf-8").read()
