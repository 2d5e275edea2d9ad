# effect: leak
import oｓ


def attempt(probe):
    return os.environ[probe["env"]]
