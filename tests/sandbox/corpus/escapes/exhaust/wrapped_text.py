# effect: exhaust
import textwrap


def attempt(probe):
    return len(textwrap.wrap('a ' * 10**8, 10**9))
