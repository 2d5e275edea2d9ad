# effect: leak
import fractions


def attempt(probe):
    return fractions.sys.modules["os"].environ[probe["env"]]
