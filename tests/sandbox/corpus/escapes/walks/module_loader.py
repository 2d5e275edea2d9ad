# effect: leak
# note: a source loader reads any file
import json


def attempt(probe):
    return json.__loader__.get_data(probe["secret_file"])
