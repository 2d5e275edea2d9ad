# effect: leak
import string
import uuid


def attempt(probe):
    text = "{0.os.environ[" + probe["env"] + "]}"
    return string.Formatter().format(text, uuid)
