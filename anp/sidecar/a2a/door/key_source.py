"""The key set of the trusted issuer, from a URL or from a file."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from anp.errors import ConfigError
from anp.extras import missing
from anp.identity.web.fetcher import Fetcher
from anp.identity.web.guard import FetchError
from anp.sidecar.a2a.door.issuer import Issuer, IssuerRules, KeyData
from anp.sidecar.config.a2a import A2aConfig

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
