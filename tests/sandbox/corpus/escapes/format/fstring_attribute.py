# effect: leak
import random


def attempt(probe):
    return f"{random._os.environ[probe['env']]!r:>{100}}"
