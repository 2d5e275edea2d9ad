"""The address of a store on Redis or Valkey, shown without its password. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from cache.errors import CacheError

DEFAULT_PREFIX = "anpd"
"Default beginning of all our keys on a server."

_PREFIX = re.compile(r"[A-Za-z0-9_.:{}-]{1,64}")
_PORT = 6379


class PlaceError(CacheError):
    """The URL or the prefix is invalid; the message quotes neither."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisPlace:
    """A server, a database on it, and the prefix of our keys there."""

    scheme: str
    "`redis`, `rediss` or `unix`."

    host: str = ""
    "Name or address; empty for `unix`."

    port: int = _PORT

    path: str = ""

    db: int = 0
    "Number of the database."

    username: str | None = field(default=None, repr=False)
    "User name for the login; None is the default user."

    password: str | None = field(default=None, repr=False)
    "Password for the login; None sends none."

    prefix: str = DEFAULT_PREFIX
    "Beginning of every key."

    ca_file: Path | None = None
    "Certificates (PEM) that verify the server's; None uses the system's."

    @classmethod
    def parse(
        cls, url: str, *, prefix: str = DEFAULT_PREFIX, ca_file: Path | None = None
    ) -> RedisPlace:
        """Return the place that `url` names.

        `redis://[user[:password]@]host[:port][/db]`, `rediss://…` with TLS, or
        `unix://[user[:password]@]/path[?db=N]`. A certificate is always checked; there
        is no parameter that turns this off.

        Raises:
            PlaceError: the URL is invalid; one line without any part of a password.
        """
        if not _PREFIX.fullmatch(prefix):
            raise PlaceError("cache.prefix: 1 to 64 of A-Z a-z 0-9 _ . : { } -")
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise PlaceError("cache.url: not a URL with host and port") from None
        if parts.scheme not in {"redis", "rediss", "unix"}:
            raise PlaceError("cache.url: begins with redis://, rediss:// or unix://")
        if any(not "!" <= char <= "~" for char in url) or parts.fragment:
            raise PlaceError(
                "cache.url: write characters that are no plain ASCII, and # in a "
                "password, as %XX"
            )
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        if query.keys() - {"db"}:
            raise PlaceError("cache.url: the only parameter is db")
        number = query.get("db")
        path, host = "", parts.hostname or ""
        if parts.scheme == "unix":
            path = unquote(parts.path)
            if host or port is not None or not path.startswith("/"):
                raise PlaceError("cache.url: unix:// needs an absolute path")
        else:
            if not host:
                raise PlaceError("cache.url: names no host")
            number = number if number is not None else parts.path.strip("/")
        if number and not (number.isascii() and number.isdecimal() and len(number) < 6):
            raise PlaceError("cache.url: the database is a number, such as /0")
        return cls(
            scheme=parts.scheme,
            host=host,
            port=port or _PORT,
            path=path,
            db=int(number or 0),
            username=unquote(parts.username) if parts.username else None,
            password=unquote(parts.password) if parts.password else None,
            prefix=prefix,
            ca_file=ca_file,
        )

    @property
    def shown(self) -> str:
        """The URL for people and logs, without user and password."""
        if self.scheme == "unix":
            return f"unix://{self.path}" + (f"?db={self.db}" if self.db else "")
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}/{self.db}"
