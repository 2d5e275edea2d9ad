# effect: leak
import uuid


def attempt(probe):
    return uuid.os.environ[probe["env"]]
