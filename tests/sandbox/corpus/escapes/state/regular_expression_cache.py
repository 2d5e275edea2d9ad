# effect: state
# note: an entry in the cache of compiled patterns
import re


def attempt(probe):
    re.compile("polluted1")
    key = next(key for key in re._cache if key[1] == "polluted1")
    re._cache[(str, "polluted2", 0)] = re._cache[key]
    if hasattr(re, "_cache2"):
        re._cache2[(str, "polluted2", 0)] = re._cache[key]


def check(probe):
    return "escaped" if re.compile("polluted2").pattern == "polluted1" else "clean"
