# effect: exhaust
import re


def attempt(probe):
    return re.match(r'(a+)+$', 'a' * 40 + 'b')
