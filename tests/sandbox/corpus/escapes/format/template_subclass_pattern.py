# effect: leak
# note: a Template whose mapping reads the environment
import os
import string


def attempt(probe):
    return string.Template("${" + probe["env"] + "}").substitute(os.environ)
