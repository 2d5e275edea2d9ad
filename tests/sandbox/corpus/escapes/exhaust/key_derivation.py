# effect: exhaust
# note: a C loop by design
import hashlib


def attempt(probe):
    return hashlib.pbkdf2_hmac('sha256', b'a', b'b', 10**9)
