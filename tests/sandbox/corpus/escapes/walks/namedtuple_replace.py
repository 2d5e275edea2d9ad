# effect: leak
# note: generated methods keep the globals of collections
import collections


def attempt(probe):
    made = collections.namedtuple("made", "a")
    return made._replace.__globals__["_sys"].modules["os"].environ[probe["env"]]
