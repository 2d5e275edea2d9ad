# effect: exhaust
import re


def attempt(probe):
    return re.sub(r'(x+x+)+y', '', 'x' * 40)
