"""The one place that fetches URLs which peers name (DESIGN.md, Trust).

The host is resolved here, its addresses are judged, and the connection goes to the
address that was judged, while certificate and `Host` stay those of the name: a name
server that gives another answer the second time is never asked a second time.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from anp.errors import ConfigError
from anp.identity.web.guard import (
    FetchError,
    FetchPolicy,
    FetchUrl,
    choose_addresses,
    parse_fetch_url,
    redirect_url,
)

if TYPE_CHECKING:
    import httpx2

# Loads the HTTP library beside the event loop, when it is first needed.
#
# That takes a fifth of a second, for which the calls of every peer would wait; and a
# daemon that fetches nothing needs none of it.


async def load_http() -> None:
    """Load the library with all that its first request would load."""
    await asyncio.to_thread(_load)


@cache
def _load() -> None:
    asyncio.run(_ask_nobody())


async def _ask_nobody() -> None:
    """Ask at a port that no server can have; much is loaded with a connection."""
    import httpx2

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    async with httpx2.AsyncClient(verify=tls, trust_env=False) as client:
        with contextlib.suppress(httpx2.HTTPError):
            await client.get("http://127.0.0.1:0/")


ResolveHost = Callable[[str, int], Awaitable[Sequence[str]]]
"Returns the addresses of a host, as text; raises OSError when there are none."

JSON_TYPES = frozenset({"application/json", "+json"})
"Content types of JSON; `+json` means every type that ends so."

REDIRECTS = frozenset({301, 302, 303, 307, 308})
Answer = TypeVar("Answer")
_MAX_AGE = re.compile(r"max-age\s*=\s*\"?([0-9]{1,9})\"?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Fetched:
    """The answer of a server."""

    url: str
    "Where the body came from at last."

    body: bytes
    "At most as large as was asked for."

    content_type: str
    "Media type in lower case without parameters; empty if none was said."

    max_age: float | None
    "Seconds it may be kept by its `Cache-Control`; 0 is not at all, None is unsaid."


def client_tls(ca_file: str | None = None) -> ssl.SSLContext:
    """Return how we check others' certificates: the system's authorities and `ca_file`.

    Raises:
        ConfigError: `ca_file` cannot be read.
    """
    if ca_file is None:
        return _system_tls()
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(cafile=ca_file)
    except (OSError, ssl.SSLError) as exc:
        raise ConfigError(
            f"fetch.ca_file: {ca_file} holds no PEM certificates: {exc.strerror or exc}"
        ) from exc
    return context


@functools.cache
def _system_tls() -> ssl.SSLContext:
    # Reading the system's authorities takes as long as half a daemon's start.
    return ssl.create_default_context()


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """Return the addresses that the system's resolver gives for a host."""
    found = await asyncio.get_running_loop().getaddrinfo(
        host, port, type=socket.SOCK_STREAM
    )
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Fetcher:
    """Fetches what peers name, or says why not."""

    def __init__(
        self,
        policy: FetchPolicy | None = None,
        *,
        resolve: ResolveHost | None = None,
        max_parallel: int = 8,
    ) -> None:
        """Fetch within `policy`.

        Args:
            resolve: Stands in for the system's resolver.
            max_parallel: Fetches under way at once; others wait, within their deadline.

        Raises:
            ConfigError: `policy.ca_file` cannot be read.
        """
        self._policy = policy or FetchPolicy()
        self._resolve = resolve or resolve_host
        self._tls = client_tls(self._policy.ca_file)
        self._places = asyncio.Semaphore(max_parallel)

    @property
    def tls(self) -> ssl.SSLContext:
        """The settings that check certificates, for those who connect themselves."""
        return self._tls

    async def fetch(
        self,
        url: str,
        *,
        max_size: int,
        deadline: float = 10.0,
        content_types: frozenset[str] | None = None,
        same_host: bool = False,
    ) -> Fetched:
        """Return what is at `url`.

        Args:
            max_size: Largest body, in bytes, as it is after decoding; compression is
                not asked for and an answer with it is refused.
            deadline: Seconds for everything: names, connections, redirects and body.
            content_types: Media types taken; None takes any.
            same_host: A redirect to another host or port is an error.

        Raises:
            FetchError: Nothing else is raised for what a peer can bring about.
        """
        try:
            async with asyncio.timeout(deadline):
                async with self._places:
                    return await self._follow(url, max_size, content_types, same_host)
        except TimeoutError:
            raise FetchError(
                f"{_short(url)} gave no answer in {deadline:g} s"
            ) from None

    async def addresses(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host that may be connected to.

        For those who connect themselves to an address that a peer names: connect to one
        of these, not to the name.

        Raises:
            FetchError: There is none, or one is forbidden.
        """
        try:
            found = await self._resolve(host, port)
        except (OSError, UnicodeError) as exc:
            reason = getattr(exc, "strerror", None) or str(exc)
            raise FetchError(f"{host[:200]!r} cannot be resolved: {reason}") from exc
        return choose_addresses(found, self._policy)

    async def _follow(
        self,
        url: str,
        max_size: int,
        content_types: frozenset[str] | None,
        same_host: bool,
    ) -> Fetched:
        target = parse_fetch_url(url, self._policy)
        for _ in range(self._policy.max_redirects + 1):
            found = await self._get(target, max_size, content_types)
            if isinstance(found, Fetched):
                return found
            target = redirect_url(target, found, self._policy, same_host=same_host)
        raise FetchError(
            f"{_short(url)} redirects more than {self._policy.max_redirects} times"
        )

    async def _get(
        self, target: FetchUrl, max_size: int, content_types: frozenset[str] | None
    ) -> Fetched | str:
        """Return an answer, or where it redirects to."""

        async def read(response: httpx2.Response) -> Fetched | str:
            return await _read(response, target, max_size, content_types)

        return await self._asked(target, "GET", read, where=_short(target.text))

    async def post(
        self,
        url: str,
        body: bytes,
        *,
        headers: Mapping[str, str],
        deadline: float = 10.0,
    ) -> None:
        """Send `body` to `url`; what is answered besides its status is not read.

        No redirect is followed, and no error quotes more of the URL than its host.

        Args:
            headers: Without `Host` and `User-Agent`, which are ours.
            deadline: Seconds for everything.

        Raises:
            FetchError: It was not taken with a status from 200 to 299.
        """
        target = parse_fetch_url(url, self._policy)
        where = repr(target.authority)

        async def judge(response: httpx2.Response) -> None:
            if not response.is_success:
                raise FetchError(f"{where} answers {response.status_code}")

        try:
            async with asyncio.timeout(deadline), self._places:
                await self._asked(
                    target, "POST", judge, where=where, body=body, headers=headers
                )
        except TimeoutError:
            raise FetchError(f"{where} gave no answer in {deadline:g} s") from None

    async def check(self, url: str) -> None:
        """Judge a URL that is asked for later, and its addresses as they are now.

        Raises:
            FetchError: `refused`, it may not be asked for; else it has no address now.
        """
        target = parse_fetch_url(url, self._policy)
        await self._addresses_of(target)

    async def _addresses_of(self, target: FetchUrl) -> list[str]:
        if target.address is None:
            return await self.addresses(target.host, target.port)
        return choose_addresses([target.address.compressed], self._policy)

    async def _asked(
        self,
        target: FetchUrl,
        method: str,
        read: Callable[[httpx2.Response], Awaitable[Answer]],
        *,
        where: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask the addresses of a URL in turn, until one can be connected to."""
        await load_http()
        import httpx2

        failure = ""
        for address in await self._addresses_of(target):
            literal = f"[{address}]" if ":" in address else address
            try:
                # A client for each question: no cookies, no connections that outlive a
                # check.
                async with (
                    httpx2.AsyncClient(
                        verify=self._tls,
                        trust_env=False,
                        follow_redirects=False,
                        timeout=httpx2.Timeout(None, connect=5.0),
                    ) as client,
                    client.stream(
                        method,
                        f"{target.scheme}://{literal}:{target.port}{target.target}",
                        content=body,
                        headers={
                            **(headers or {}),
                            "Host": target.authority,
                            "Accept-Encoding": "identity",
                            "User-Agent": "anpd",
                        },
                        # Also what the certificate is checked against.
                        extensions={"sni_hostname": target.host},
                    ) as response,
                ):
                    return await read(response)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as exc:
                failure = str(exc) or type(exc).__name__
            except (httpx2.HTTPError, httpx2.InvalidURL, ssl.SSLError) as exc:
                raise FetchError(f"{where}: {exc or type(exc).__name__}"[:400]) from exc
        raise FetchError(f"cannot connect to {where}: {failure}"[:400])


async def _read(
    response: httpx2.Response,
    target: FetchUrl,
    max_size: int,
    content_types: frozenset[str] | None,
) -> Fetched | str:
    where = _short(target.text)
    if response.status_code in REDIRECTS:
        location: str | None = response.headers.get("location")
        if location is None:
            raise FetchError(f"{where} redirects to nowhere")
        return location
    if response.status_code != 200:
        raise FetchError(
            f"{where} answers {response.status_code}",
            gone=response.status_code in {404, 410},
        )
    content_type = _media_type(response)
    if not _is_taken(content_type, content_types):
        raise FetchError(f"{where} has the content type {content_type[:60]!r}")
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        # A small body can be a large one in disguise.
        raise FetchError(f"{where} is compressed, which was not asked for")
    declared = response.headers.get("content-length", "0")
    if declared.isascii() and declared.isdigit() and int(declared[:20]) > max_size:
        raise FetchError(f"{where} has {declared[:20]} bytes, at most {max_size} fit")
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > max_size:
            raise FetchError(f"{where} has more than {max_size} bytes")
    return Fetched(target.text, bytes(body), content_type, _max_age(response))


def _media_type(response: httpx2.Response) -> str:
    text: str = response.headers.get("content-type", "")
    return text.partition(";")[0].strip().lower()


def _is_taken(content_type: str, taken: frozenset[str] | None) -> bool:
    if taken is None or content_type in taken:
        return True
    suffix = content_type.rpartition("+")[2]
    return "+" in content_type and f"+{suffix}" in taken


def _max_age(response: httpx2.Response) -> float | None:
    control: str = response.headers.get("cache-control", "").lower()
    if "no-store" in control or "no-cache" in control:
        return 0.0
    match = _MAX_AGE.search(control)
    return None if match is None else float(match[1])


def _short(url: str) -> str:
    return repr(url[:200])
