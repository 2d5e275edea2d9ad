# effect: leak
# note: Python 3.11
import urllib.parse


def attempt(probe):
    return urllib.parse.sys.modules["os"].environ[probe["env"]]
