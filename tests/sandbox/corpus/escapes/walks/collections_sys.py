# effect: leak
import collections


def attempt(probe):
    return collections._sys.modules["os"].environ[probe["env"]]
