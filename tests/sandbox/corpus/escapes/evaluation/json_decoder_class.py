# effect: leak
# note: json calls whatever stands for the decoder
import json


class Reader:
    def __init__(self, **kwargs):
        pass

    def decode(self, path):
        return open(path).read()


def attempt(probe):
    return json.loads(probe["secret_file"], cls=Reader)
