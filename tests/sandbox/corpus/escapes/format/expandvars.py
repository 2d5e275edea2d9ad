# effect: leak
import os.path


def attempt(probe):
    return os.path.expandvars("$" + probe["env"])
