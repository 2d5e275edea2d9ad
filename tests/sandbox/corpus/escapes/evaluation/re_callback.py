# effect: leak
import re


def attempt(probe):
    return re.sub(".+", lambda match: open(match[0]).read(), probe["secret_file"])
