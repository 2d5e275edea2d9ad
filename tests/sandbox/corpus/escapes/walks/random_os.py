# effect: leak
import random


def attempt(probe):
    return random._os.environ[probe["env"]]
