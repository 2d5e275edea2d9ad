# effect: leak
import re


def attempt(probe):
    return re.enum.sys.modules["os"].environ[probe["env"]]
