# effect: leak
from os import *


def attempt(probe):
    return environ[probe["env"]]
