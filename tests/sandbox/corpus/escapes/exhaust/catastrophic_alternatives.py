# effect: exhaust
# note: many alternatives that fit
import re


def attempt(probe):
    return re.match(r'((\w+)|(\d+))*:', '0' * 40)
