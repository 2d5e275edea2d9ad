# effect: leak
import gc
import json


def attempt(probe):
    gc.unfreeze()
    for found in gc.get_referrers(json):
        if type(found) is dict and "os" in found:
            return found["os"].environ[probe["env"]]
