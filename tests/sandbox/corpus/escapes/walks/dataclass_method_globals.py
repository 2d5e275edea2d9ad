# effect: leak
import dataclasses


@dataclasses.dataclass
class Made:
    a: int = 0


def attempt(probe):
    inside = dataclasses.replace.__globals__
    return inside["sys"].modules["os"].environ[probe["env"]]
