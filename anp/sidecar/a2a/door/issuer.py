"""Callers by signed tokens (JWT) of an issuer that the owner trusts (A2A-3, A2A-9).

Only signatures by public keys count, and only those of the issuer's own key set: what
the head of a token says about keys, addresses and algorithms chooses among those keys
and brings in none.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from anp.errors import ConfigError
from anp.extras import missing
from anp.identity.web.fetcher import Fetcher
from anp.identity.web.guard import FetchError
from anp.interaction.elements import JWT
from anp.sidecar.a2a.door.callers import A2aCaller
from anp.sidecar.config.a2a import A2aConfig

logger = logging.getLogger(__name__)

ALGORITHMS: Final[Mapping[str, tuple[str, str | None]]] = {
    **dict.fromkeys(("RS256", "RS384", "RS512"), ("RSA", None)),
    **dict.fromkeys(("PS256", "PS384", "PS512"), ("RSA", None)),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}
"""Each algorithm with the kind of its keys and their curve. All are asymmetric: a
public key is no secret, so that nothing may count that is signed by one as a secret.
"""

TYPES: Final = frozenset({"", "jwt", "at+jwt", "application/at+jwt"})
"Kinds of token that say who calls; others of an issuer, such as for a logout, do not."

MAX_TOKEN: Final = 16 * 1024
"Longest token, in characters."

MAX_NAME: Final = 128
"Longest name of a caller, in characters."

MAX_KEYS: Final = 100
"Keys of the issuer that are read."

SAFE: Final = "!\"#$&'()*+,:;<=>?@[\\]^`{|}"
"Characters of a name that are kept, besides letters, digits, `_`, `.`, `-` and `~`."

MIN_RSA: Final = 2048
"Shortest RSA key, in bits."

MIN_AGE: Final = 60.0
MAX_AGE: Final = 3600.0
"Least and most seconds after which the keys are fetched again."

UNKNOWN_AGE: Final = 30.0
"Seconds after which keys are fetched again for a token whose key is not among them."


class BadToken(Exception):
    """A token that lets nobody in; the text is for who sent it and quotes nothing.

    Args:
        scopes: Those of which one would be enough, if only that is missing.
    """

    def __init__(self, text: str, *, scopes: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.scopes = tuple(scopes)


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerRules:
    """The owner's rules for tokens of the issuer."""

    issuer: str
    "Exactly the `iss` of its tokens."

    audience: str
    "One of the `aud` of its tokens, so that those for others count for nothing here."

    scopes: Mapping[str, tuple[str, ...]]
    "Scope → patterns of capabilities; with none, what every peer may use."

    claim: str = "sub"
    "The claim that names the caller."

    leeway: float = 30.0
    "Seconds by which clocks may differ."


@dataclass(frozen=True, slots=True)
class _Key:
    """A public key of the issuer."""

    key: Any
    "As `jwt` takes it."

    kind: tuple[str, str | None]
    "As in `ALGORITHMS`."

    id: str | None

    algorithm: str | None
    "The only one that it is for, if the issuer says so."

    def fits(self, algorithm: str) -> bool:
        """Return whether it may have signed by an algorithm."""
        return self.kind == ALGORITHMS[algorithm] and self.algorithm in (
            None,
            algorithm,
        )


@dataclass(frozen=True, slots=True)
class KeyData:
    """The key set of an issuer, as bytes."""

    body: bytes

    max_age: float | None = None
    "Seconds for which it may be kept; None if nothing is said."


class Issuer:
    """Tells callers by the tokens of the issuer."""

    def __init__(
        self,
        rules: IssuerRules,
        fetch: Callable[[], Awaitable[KeyData]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make it.

        Args:
            fetch: Returns the key set; OSError when it cannot be had.
        """
        self._rules = rules
        self._fetch = fetch
        self._clock = clock
        self._keys: tuple[_Key, ...] = ()
        self._fetched = -MAX_AGE
        self._fresh_until = -MAX_AGE
        self._lock = asyncio.Lock()

    async def caller(self, token: str) -> A2aCaller:
        """Return the caller of a token.

        Raises:
            BadToken: It is none of the issuer's, not for us, or not for now.
        """
        algorithm, kid = _head(token)
        for key in await self._fitting(algorithm, kid):
            claims = self._claims(token, key, algorithm)
            if claims is not None:
                return self._named(claims)
        raise BadToken("the token is not signed by the issuer")

    def _claims(self, token: str, key: _Key, algorithm: str) -> dict[str, Any] | None:
        """Return the claims of a token, None if another key signed it."""
        # It takes a moment to import, and most daemons trust no issuer.
        import jwt

        rules = self._rules
        try:
            found: dict[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=[algorithm],
                issuer=rules.issuer,
                audience=rules.audience,
                leeway=rules.leeway,
                options={"require": ["exp", "iss", "aud", rules.claim]},
            )
            return found
        except jwt.InvalidSignatureError:
            return None
        except jwt.PyJWTError as exc:
            raise BadToken(_REASONS.get(type(exc).__name__, _NO_TOKEN)) from exc
        except Exception as exc:
            # Claims of wrong types set off whatever they may in the library.
            raise BadToken(_NO_TOKEN) from exc

    def _named(self, claims: Mapping[str, Any]) -> A2aCaller:
        name = claims.get(self._rules.claim)
        if (
            not isinstance(name, str)
            or not 0 < len(name) <= MAX_NAME
            or not name.isprintable()
        ):
            raise BadToken("the token does not name its caller")
        expose: tuple[str, ...] | None = None
        if self._rules.scopes:
            given = _scopes(claims)
            found = [
                self._rules.scopes[one] for one in given if one in self._rules.scopes
            ]
            if not found:
                raise BadToken(
                    "the token has no scope of this agent",
                    scopes=tuple(self._rules.scopes),
                )
            expose = tuple(dict.fromkeys(one for names in found for one in names))
        # No token of ours has a name with a colon. What separates keys of the store,
        # or is not ASCII, is written as in a URL.
        return A2aCaller(name=f"{JWT}{quote(name, safe=SAFE)}", expose=expose)

    # The keys.

    async def _fitting(self, algorithm: str, kid: str | None) -> list[_Key]:
        """Return the keys that may have signed a token, fetched again if it is time."""
        async with self._lock:
            now = self._clock()
            if now >= self._fresh_until:
                await self._renew(now)
            found = _choose(self._keys, algorithm, kid)
            if not found and now - self._fetched >= UNKNOWN_AGE:
                # The issuer may have a new key.
                await self._renew(now)
                found = _choose(self._keys, algorithm, kid)
        return found

    async def _renew(self, now: float) -> None:
        self._fetched = now
        try:
            data = await self._fetch()
            keys = _read_keys(data.body)
        except (OSError, ValueError) as exc:
            # Those that are known go on; it is tried again in a while.
            self._fresh_until = now + MIN_AGE
            logger.warning("keys of the issuer not read reason=%.200s", exc)
            return
        age = MAX_AGE if data.max_age is None else data.max_age
        self._fresh_until = now + min(MAX_AGE, max(MIN_AGE, age))
        self._keys = keys


_NO_TOKEN: Final = "the token cannot be read"

_REASONS: Final = {
    "ExpiredSignatureError": "the token has expired",
    "ImmatureSignatureError": "the token is not valid yet",
    "InvalidAudienceError": "the token is for somebody else",
    "InvalidIssuerError": "the token is of another issuer",
    "MissingRequiredClaimError": "the token lacks a claim",
}


def _head(token: str) -> tuple[str, str | None]:
    """Return algorithm and key id of a token."""
    import jwt

    if len(token) > MAX_TOKEN:
        raise BadToken("the token is too long")
    try:
        head = jwt.get_unverified_header(token)
    except Exception as exc:
        raise BadToken(_NO_TOKEN) from exc
    algorithm, kid, kind = head.get("alg"), head.get("kid"), head.get("typ", "")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise BadToken("the token is signed in a way that does not count here")
    if "crit" in head or not isinstance(kind, str) or kind.lower() not in TYPES:
        raise BadToken("the token is of a kind that does not count here")
    if kid is not None and not isinstance(kid, str):
        raise BadToken(_NO_TOKEN)
    return algorithm, kid


def _choose(keys: Sequence[_Key], algorithm: str, kid: str | None) -> list[_Key]:
    """Return the keys for an algorithm; a token that names its key gets that alone."""
    return [
        key for key in keys if (kid is None or key.id == kid) and key.fits(algorithm)
    ]


def _read_keys(data: bytes) -> tuple[_Key, ...]:
    """Return the keys of a set that verify signatures; ValueError if it is no set."""
    try:
        found = json.loads(data)
    except RecursionError as exc:
        raise ValueError("nested too deeply") from exc
    listed = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(listed, list):
        raise ValueError("it is no set of keys")
    found = [_read_key(one) for one in listed[:MAX_KEYS]]
    if None in found:
        logger.info("keys of the issuer left out number=%d", found.count(None))
    return tuple(key for key in found if key is not None)


def _read_key(found: Any) -> _Key | None:
    """Return a public key that verifies signatures, None for any other."""
    import jwt

    if not isinstance(found, dict) or found.get("use") not in (None, "sig"):
        return None
    uses, kid, said = found.get("key_ops"), found.get("kid"), found.get("alg")
    kind = found.get("kty"), None if found.get("kty") == "RSA" else found.get("crv")
    names = [name for name, needed in ALGORITHMS.items() if needed == kind]
    if (
        not names
        or said not in (None, *names)
        or (isinstance(uses, list) and "verify" not in uses)
        or not isinstance(kid, str | None)
        # A private part has no place among public keys.
        or "d" in found
    ):
        return None
    try:
        key = jwt.PyJWK(found, names[0]).key
    except Exception:  # noqa: BLE001  # one key that is none harms no other
        return None
    if kind[0] == "RSA" and getattr(key, "key_size", 0) < MIN_RSA:
        return None
    return _Key(key, ALGORITHMS[names[0]], kid, said)


def _scopes(claims: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for name in ("scope", "scp"):
        value = claims.get(name)
        if isinstance(value, str):
            found += value.split()
        elif isinstance(value, list):
            found += [one for one in value if isinstance(one, str)]
    return found


# The key set of the trusted issuer, from a URL or from a file.


MAX_SIZE: Final = 1024 * 1024
"Largest key set, in bytes."

FILE_AGE: Final = 60.0
"Seconds after which a file is read again."


def make_issuer(config: A2aConfig, fetcher: Fetcher) -> Issuer | None:
    """Return the issuer that the owner trusts, or None.

    Raises:
        ConfigError: The packages that read its tokens are missing.
    """
    if config.issuer is None or config.audience is None or config.keys is None:
        return None
    if reason := missing("a2a"):
        raise ConfigError(f"a2a.issuer: {reason}")
    place = config.keys
    rules = IssuerRules(
        issuer=config.issuer,
        audience=config.audience,
        scopes=config.scopes,
        claim=config.caller_claim,
        leeway=config.leeway,
    )

    async def fetched() -> KeyData:
        try:
            found = await fetcher.fetch(place, max_size=MAX_SIZE)
        except FetchError as exc:
            raise OSError(exc.reason) from exc
        return KeyData(found.body, found.max_age)

    async def read() -> KeyData:
        return KeyData(await asyncio.to_thread(_read, Path(place)), FILE_AGE)

    return Issuer(rules, fetched if "://" in place else read)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_SIZE)
