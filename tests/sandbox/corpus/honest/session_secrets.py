# kind: secrets, time and tokens that differ each time
"""Session tokens; what is random is checked by its form."""

import hashlib
import math
import secrets
import string
import time
import uuid

ALPHABET = string.ascii_letters + string.digits


def new_token(size: int = 16) -> dict:
    token = secrets.token_urlsafe(size)
    return {
        "token": token,
        "digest": hashlib.sha256(token.encode()).hexdigest(),
        "expires": int(time.time()) + 3600,
    }


def check_token(token: str, digest: str) -> bool:
    actual = hashlib.sha256(token.encode()).hexdigest()
    return secrets.compare_digest(actual, digest)


def token_is_sound() -> bool:
    first, second = new_token(), new_token()
    return (
        first["token"] != second["token"]
        and len(first["token"]) == math.ceil(16 * 4 / 3)
        and check_token(first["token"], first["digest"])
        and not check_token(second["token"], first["digest"])
        and first["expires"] > 1_700_000_000
    )


def password(length: int) -> str:
    if length < 8:
        raise ValueError("a password has at least 8 characters")
    while True:
        candidate = "".join(secrets.choice(ALPHABET) for _ in range(length))
        if (
            any(c.islower() for c in candidate)
            and any(c.isupper() for c in candidate)
            and sum(c.isdigit() for c in candidate) >= 2
        ):
            return candidate


def password_is_sound(length: int) -> list:
    text = password(length)
    return [len(text), set(text) <= set(ALPHABET), text != password(length)]


def nonce_is_sound() -> bool:
    nonce = secrets.token_bytes(12)
    number = secrets.randbelow(10)
    ids = {uuid.uuid4().hex for _ in range(20)}
    return len(nonce) == 12 and 0 <= number < 10 and len(ids) == 20
