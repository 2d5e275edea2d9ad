# effect: leak
import enum


class Reader(enum.Enum):
    ONE = 1

    @classmethod
    def _missing_(cls, path):
        made = object.__new__(cls)
        made._value_ = open(path).read()
        return made


def attempt(probe):
    return Reader(probe["secret_file"]).value
