"""Access to the dashboard: one-time codes, cookies, and when a cookie counts. Pure.

A code comes from a program that may use the API already, in a link; the page swaps it
for a cookie. Both live in memory: a daemon that starts anew knows none.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Callable, Collection, Mapping
from typing import Final

CODE_LIFETIME: Final = 300.0
"Seconds for which a link can be opened, once."

COOKIE_LIFETIME: Final = 12 * 3600
"Seconds for which a browser stays signed in (SIDECAR.md, Dashboard)."

PAGE_HEADER: Final = "x-anpd-page"
"Sent by our page with every request; no foreign page can add it unasked (CORS)."

MAX_CODES: Final = 16
"Codes that wait to be used; with more, the oldest is forgotten."

MAX_COOKIES: Final = 32
"Browsers that are signed in; with more, the oldest is signed out."

MAX_SECRET: Final = 128
"Longest code or cookie that is looked at, in characters."


class Visits:
    """The codes that may be used once, and the cookies that were given for them.

    `now` is seconds on one monotonic clock. Only digests are kept, so that neither a
    dump of this object nor the time of a comparison tells a secret.
    """

    def __init__(self, random_bytes: Callable[[int], bytes]) -> None:
        self._random_bytes = random_bytes
        self._codes: dict[str, float] = {}
        self._cookies: dict[str, float] = {}

    def new_code(self, *, now: float) -> str:
        """Return a new code; it can be used once, within `CODE_LIFETIME`."""
        return self._keep(self._codes, now + CODE_LIFETIME, most=MAX_CODES)

    def redeem(self, code: str, *, now: float) -> str | None:
        """Return a cookie's value for a code, or None if the code is not good."""
        expires = self._codes.pop(_digest(code), None)
        if expires is None or now >= expires:
            return None
        return self._keep(self._cookies, now + COOKIE_LIFETIME, most=MAX_COOKIES)

    def knows(self, cookie: str, *, now: float) -> bool:
        """Tell whether a cookie's value is one that we gave and that still counts."""
        expires = self._cookies.get(_digest(cookie))
        return expires is not None and now < expires

    def leave(self, cookie: str) -> None:
        """Sign a browser out."""
        self._cookies.pop(_digest(cookie), None)

    def _keep(self, kept: dict[str, float], expires: float, *, most: int) -> str:
        secret = urlsafe_b64encode(self._random_bytes(32)).decode("ascii").rstrip("=")
        while len(kept) >= most:
            del kept[next(iter(kept))]
        kept[_digest(secret)] = expires
        return secret


def cookie_name(port: int) -> str:
    """Return the cookie's name; browsers send cookies to every port of a host."""
    return f"anpd-{port}"


def cookie_counts(headers: Mapping[str, str], own_origins: Collection[str]) -> bool:
    """Tell whether the cookie that came with a request may speak for the owner.

    Other programs of this machine serve pages too, on other ports: to `SameSite` they
    are the same site. So the header has to be there that only our page can add: a page
    of another origin would have to ask first (CORS), and is never answered. `Origin`
    alone cannot tell, because browsers leave it out when a page reads from where it
    came; if it is there it has to be ours, and so does what the browser itself says.

    Args:
        headers: By lower-case name.
        own_origins: Origins of ours, such as `http://127.0.0.1:8484`.
    """
    origin = headers.get("origin")
    return (
        PAGE_HEADER in headers
        and headers.get("sec-fetch-site", "same-origin") == "same-origin"
        and (origin is None or origin.lower() in own_origins)
    )


def _digest(secret: str) -> str:
    data = secret[: MAX_SECRET + 1].encode("utf-8", errors="replace")
    return hashlib.sha256(data).hexdigest()
