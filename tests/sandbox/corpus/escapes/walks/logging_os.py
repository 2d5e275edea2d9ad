# effect: leak
import logging


def attempt(probe):
    return logging.os.environ[probe["env"]]
