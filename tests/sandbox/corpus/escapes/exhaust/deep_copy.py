# effect: exhaust
import copy


def attempt(probe):
    value = []
    for _ in range(10**5):
        value = [value]
    return copy.deepcopy(value)
