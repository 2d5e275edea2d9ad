# effect: exhaust
import secrets


def attempt(probe):
    return len(secrets.token_bytes(10**10))
