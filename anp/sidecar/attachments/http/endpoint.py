"""One HTTP server of the owner's: what is sent to it, and how much is taken back."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path

import httpx2

from anp.channel.dial_errors import dial_problem
from anp.errors import ConfigError
from anp.identity.web.fetcher import client_tls
from anp.sidecar.attachments.attachment import AttachmentError, ToolError
from anp.sidecar.attachments.http.answers import HttpAnswer, OpenAnswer
from anp.sidecar.attachments.http.streams import STREAM_TYPES
from anp.sidecar.attachments.spec import AttachmentSpec, Credentials, read_credentials
from anp.sidecar.attachments.urls import Url, join_url, parse_url
from anp.wire.messages import format_ns

CALLER_HEADER = "Anpd-Caller"
"Header with the DID of the peer a call is made for."

DEADLINE_HEADER = "Anpd-Deadline"
"Header with the time, in RFC 3339, after which nobody waits for the answer."

CONNECT_TIMEOUT = 5.0
"Seconds until a connection has to stand."

MAX_REDIRECTS = 3
"Redirects followed, all within one origin."

KEEPS_METHOD = frozenset({307, 308})
REDIRECTS = frozenset({301, 302, 303}) | KEEPS_METHOD

ENDLESS = "anpd.endless"
"Extension of a request whose answer may be of any size if it streams."

NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
"Failures before a byte of the request has gone."


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """The circumstances of a call that the agent learns besides its arguments."""

    call_id: str
    "Made up for this call; never used twice."

    caller: str
    "DID of the peer."

    deadline: float
    "Unix time after which nobody waits."


class HttpEndpoint:
    """Sends requests below one URL of the owner's, with the owner's secrets.

    Nothing goes to another origin: not by a redirect, and not by what a document says.
    """

    def __init__(self, url: Url, spec: AttachmentSpec, *, max_answer: int) -> None:
        self.url = url
        self._spec = spec
        self._max_answer = max_answer
        self._client: httpx2.AsyncClient | None = None

    @property
    def secret_names(self) -> frozenset[tuple[str, str]]:
        """Places that the owner's secrets take, such as `("header", "x-api-key")`."""
        spec = self._spec
        names = {("header", name.lower()) for name in spec.headers}
        names |= {("query", name) for name in spec.query}
        if spec.bearer or spec.basic or spec.uses_oauth:
            names.add(("header", "authorization"))
        return frozenset(names)

    @property
    def client(self) -> httpx2.AsyncClient:
        """The client, for libraries that make their own requests.

        It adds the secrets, and refuses what is not within the origin.
        """
        if self._client is None:
            raise AttachmentError("the attachment is closed")
        return self._client

    async def open(self) -> None:
        """Read the secrets and make the client.

        Raises:
            AttachmentError: A secret or a certificate cannot be read.
        """
        # The secrets are read with every start, so that a new one needs no new daemon.
        self._client = await asyncio.to_thread(
            _client, self.url, self._spec, self._max_answer
        )

    async def close(self) -> None:
        """Close every connection; idempotent."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def ask(
        self,
        method: str,
        url: Url,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> HttpAnswer:
        """Send a request and read the whole answer; the caller sets the deadline.

        Raises:
            AttachmentError: There was no answer; `may_have_run` tells the rest.
            ToolError: 502, the answer is too large or leads elsewhere.
        """
        async with self.exchange(
            method, url, headers=headers, content=content
        ) as answer:
            return await answer.read()

    @asynccontextmanager
    async def exchange(
        self,
        method: str,
        url: Url,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        endless: bool = False,
    ) -> AsyncIterator[OpenAnswer]:
        """Send a request, and keep the answer open for a block.

        The end of the block closes the connection of an answer that was not read.

        Args:
            endless: The body of a success may be of any size if it streams; whoever
                reads it holds no more than a piece.

        Raises:
            AttachmentError: There was no answer, or it broke off; `may_have_run`
                tells the rest.
            ToolError: 502, the answer is too large or leads elsewhere.
        """
        for asked in range(MAX_REDIRECTS + 1):
            try:
                async with self._sent(method, url, headers, content, endless) as found:
                    if found.status not in REDIRECTS or not found.location:
                        yield found
                        return
            except AttachmentError as exc:
                # Nobody knows what the service did before it sent us elsewhere.
                exc.may_have_run = exc.may_have_run or asked > 0
                raise
            target = self.within(url, found.location)
            if found.status not in KEEPS_METHOD and method not in {"GET", "HEAD"}:
                raise ToolError(502, f"the service redirects a {method} elsewhere")
            url = target
        raise ToolError(502, "the service redirects too often")

    def within(self, url: Url, to: str, *, does: str = "redirects") -> Url:
        """Return the URL that an answer names, if it stays at the same origin.

        Args:
            url: The URL that answered so.
            does: Verb for the words of an error.

        Raises:
            ToolError: 502, it is none, or it is another host's.
        """
        try:
            target = join_url(url, to)
        except ValueError:
            raise ToolError(502, f"the service {does} to no URL") from None
        if target.origin != url.origin:
            raise ToolError(502, f"the service {does} to {target.origin}, another host")
        return target

    async def reach(self) -> None:
        """Connect and hang up: what stands there may do something at any request.

        Raises:
            AttachmentError: Nobody takes connections there.
        """
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                _, writer = await asyncio.open_connection(self.url.host, self.url.port)
        except (OSError, TimeoutError) as exc:
            where = self.url.origin
            why = dial_problem(exc, where, waited=CONNECT_TIMEOUT, service="it")
            raise AttachmentError(f"cannot connect to {where}: {why}") from None
        writer.close()

    @asynccontextmanager
    async def _sent(
        self,
        method: str,
        url: Url,
        headers: Mapping[str, str] | None,
        content: bytes | None,
        endless: bool,
    ) -> AsyncIterator[OpenAnswer]:
        try:
            async with self.client.stream(
                method,
                url.text,
                headers=headers,
                content=content,
                extensions={ENDLESS: endless},
            ) as response:
                yield OpenAnswer(response, url)
        except NOT_SENT as exc:
            why = dial_problem(exc, url.origin, waited=CONNECT_TIMEOUT, service="it")
            raise AttachmentError(f"cannot connect to {url.origin}: {why}") from None
        except TooLargeError as exc:
            raise ToolError(502, str(exc)) from None
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL) as exc:
            raise AttachmentError(
                f"{url.origin} broke off: {_why(exc)}", may_have_run=True
            ) from None


class TooLargeError(httpx2.TransportError):
    """An answer is larger than its limit, or larger than it seems."""


class CappedTransport(httpx2.AsyncBaseTransport):
    """Reads at most so many bytes of every answer, unless it streams and may."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, max_answer: int) -> None:
        self._inner = inner
        self._max_answer = max_answer

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; its answer's stream counts what is read."""
        response = await self._inner.handle_async_request(request)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            # A small body can be a large one in disguise.
            raise TooLargeError("the answer is compressed, which was not asked for")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        if request.extensions.get(ENDLESS) and _streams(response):
            return response
        response.stream = _CappedStream(response.stream, self._max_answer)
        return response

    async def aclose(self) -> None:
        """Close every connection."""
        await self._inner.aclose()


class _CappedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, max_size: int) -> None:
        self._inner = inner
        self._left = self._max_size = max_size

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            self._left -= len(chunk)
            if self._left < 0:
                raise TooLargeError(f"the answer is over {self._max_size} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class BoundTransport(httpx2.AsyncBaseTransport):
    """Adds the owner's secrets, and sends nothing anywhere else."""

    def __init__(
        self, inner: httpx2.AsyncBaseTransport, url: Url, credentials: Credentials
    ) -> None:
        self._inner = inner
        self._url = url
        self._credentials = credentials

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request if it stays within the origin."""
        try:
            origin = parse_url(str(request.url)).origin
        except ValueError:
            origin = "no URL"
        if origin != self._url.origin:
            raise httpx2.UnsupportedProtocol(f"{origin} is not {self._url.origin}")
        # A request of our own, since the library logs the URL of the other one. What
        # the owner gave comes last: nothing a peer said can stand in its place.
        sent = httpx2.Request(
            request.method,
            request.url,
            headers=request.headers,
            stream=request.stream,
            extensions=request.extensions,
        )
        sent.headers.update(self._credentials.headers)
        if self._credentials.query:
            sent.url = sent.url.copy_merge_params(dict(self._credentials.query))
        return await self._inner.handle_async_request(sent)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._inner.aclose()


def _client(url: Url, spec: AttachmentSpec, max_answer: int) -> httpx2.AsyncClient:
    """Return a client that takes nothing from the environment; may block.

    Raises:
        AttachmentError: A secret or a certificate cannot be read.
    """
    inner = httpx2.AsyncHTTPTransport(
        verify=tls_of(spec),
        trust_env=False,
        limits=httpx2.Limits(max_connections=128, max_keepalive_connections=16),
    )
    capped = CappedTransport(inner, max_answer)
    transport = BoundTransport(capped, url, read_credentials(spec))
    # The cookies of one peer's call are not for another's.
    nobody = CookieJar(DefaultCookiePolicy(allowed_domains=()))
    return httpx2.AsyncClient(
        transport=transport,
        trust_env=False,
        follow_redirects=False,
        # A call's own deadline covers all but the connection.
        timeout=httpx2.Timeout(None, connect=CONNECT_TIMEOUT),
        headers={"User-Agent": "anpd", "Accept-Encoding": "identity"},
        cookies=nobody,
    )


def tls_of(spec: AttachmentSpec) -> ssl.SSLContext:
    """Return how certificates are checked; may block.

    Raises:
        AttachmentError: `ca_file` cannot be read.
    """
    ca_file = None
    if spec.ca_file is not None:
        ca_file = str((spec.cwd or Path()) / spec.ca_file.expanduser())
    try:
        return client_tls(ca_file)
    except ConfigError:
        raise AttachmentError(f"{ca_file} holds no PEM certificates") from None


def deadline_text(deadline: float) -> str:
    """Return the deadline of a call, a Unix time, in RFC 3339."""
    return format_ns(int(deadline * 1e9))


def _streams(response: httpx2.Response) -> bool:
    media_type = response.headers.get("content-type", "").partition(";")[0]
    streams = media_type.strip().lower() in STREAM_TYPES
    return streams and response.status_code < 300


def _why(exc: Exception) -> str:
    return (str(exc).partition("\n")[0] or type(exc).__name__)[:200]
