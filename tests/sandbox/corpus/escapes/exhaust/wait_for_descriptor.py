# effect: exhaust
import select


def attempt(probe):
    select.select([], [], [], 10**6)
