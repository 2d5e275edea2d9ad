# effect: leak
import enum


def attempt(probe):
    return enum.sys.modules["os"].environ[probe["env"]]
