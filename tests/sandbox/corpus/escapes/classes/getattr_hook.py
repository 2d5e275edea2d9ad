# effect: leak
import json


class Proxy:
    def __getattr__(self, name):
        return vars(json)[name]


def attempt(probe):
    return Proxy().codecs.open(probe["secret_file"]).read()
