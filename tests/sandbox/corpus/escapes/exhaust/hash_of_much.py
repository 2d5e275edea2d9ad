# effect: exhaust
import hashlib


def attempt(probe):
    made = hashlib.sha256()
    while True:
        made.update(bytes(10**7))
