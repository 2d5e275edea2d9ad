# effect: leak
# note: tries whatever has an open
import json


def attempt(probe):
    for name in dir(json):
        member = getattr(json, name)
        if hasattr(member, "open"):
            return member.open(probe["secret_file"]).read()
