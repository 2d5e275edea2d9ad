# effect: leak
import typing


def attempt(probe):
    return typing.sys.modules["os"].environ[probe["env"]]
