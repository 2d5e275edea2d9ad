# effect: leak
import uuid


def attempt(probe):
    return str.format("{0.os.environ[" + probe["env"] + "]}", uuid)
