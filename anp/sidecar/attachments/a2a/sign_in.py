"""Tokens of OAuth 2 for an agent whose card wants them (A2A-9, A2A-21).

With the owner's secret (client credentials), or with a signed token that is traded in
(RFC 7523). The secret goes to the owner's address for tokens, or to one that the card
names on its own host; never to another host that a card names.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any, Final
from urllib.parse import quote_plus, urlencode

import httpx2

from anp.sidecar.attachments.attachment import AttachmentError, ToolError
from anp.sidecar.attachments.http.endpoint import HttpEndpoint
from anp.sidecar.attachments.spec import AttachmentSpec, read_secret
from anp.sidecar.attachments.urls import Url, is_loopback, join_url, parse_url
from negotiation.errors import JsonError

MAX_ANSWER: Final = 256 * 1024
"Largest answer of the address for tokens, in bytes."

MAX_TOKEN: Final = 16 * 1024
"Longest token, in characters."

LIFETIME: Final = 300.0
"Seconds for which a token counts about which nothing is said."

EARLY: Final = 0.9
"Part of its life after which a token is fetched anew."

JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"


def sign_in(card: Any, card_url: Url, spec: AttachmentSpec) -> OAuthTokens:
    """Return what puts tokens on requests to an agent.

    Raises:
        AttachmentError: It is not clear where tokens are given, or not safe.
    """
    url, scopes = token_place(card, card_url, spec)
    return OAuthTokens(url, scopes, spec)


def token_place(
    card: Any, card_url: Url, spec: AttachmentSpec
) -> tuple[Url, tuple[str, ...]]:
    """Return the address for tokens and the scopes to ask for.

    Raises:
        AttachmentError: There is none, or it is another host's.
    """
    name, found = _scheme(card)
    scopes = spec.oauth_scopes or _scopes(card, name)
    if spec.oauth_token_url:
        return parse_url(spec.oauth_token_url), scopes
    if not isinstance(found, str):
        raise AttachmentError(
            "the agent card names no address that gives tokens; say it with "
            "--oauth-token-url"
        )
    try:
        url = join_url(card_url, found)
    except ValueError as exc:
        raise AttachmentError(f"the card's address for tokens: {exc}") from None
    if url.origin != card_url.origin:
        raise AttachmentError(
            f"tokens are given at {url.origin}, another host; if it is right: "
            f"--oauth-token-url {url.text}"
        )
    if url.scheme == "http" and not (spec.allow_http or is_loopback(url.host)):
        raise AttachmentError(f"a secret would go to {url.host} unencrypted")
    return url, scopes


def secret_wanted(card: Any) -> str:
    """Return the warning about the secret that a card requires of each call, if any."""
    schemes = _object(card, "securitySchemes")
    wanted: list[str] = []
    for one in _requirements(card):
        names = list(_object(one, "schemes") or one)
        if not names:
            # It may be called without a secret, too.
            return ""
        wanted += [_option(schemes.get(name)) for name in names if name in schemes]
    if not wanted:
        return ""
    options = " or ".join(dict.fromkeys(wanted))
    return f"the agent's card requires a secret of its callers; give it with {options}"


def _requirements(card: Any) -> list[dict[str, Any]]:
    """Return the alternatives of what a card requires of a caller."""
    for key in ("security", "securityRequirements"):
        found = card.get(key) if isinstance(card, dict) else None
        if isinstance(found, list):
            return [one for one in found if isinstance(one, dict)]
    return []


def _option(scheme: Any) -> str:
    """Return the option that gives the secret of a scheme, of 0.3 or 1.0."""
    found = scheme if isinstance(scheme, dict) else {}
    kind = found.get("type")
    for key in _KINDS_OF_10.keys() & found.keys():
        kind, found = _KINDS_OF_10[key], _object(scheme, key)
    if kind == "apiKey":
        place = found.get("in") or found.get("location")
        name = found.get("name")
        return f"--{'query' if place == 'query' else 'header'} {name}=env:NAME"
    if kind == "http" and str(found.get("scheme")).lower() == "basic":
        return "--basic env:NAME"
    if kind == "oauth2":
        return "--oauth-client ID --oauth-secret env:NAME"
    return "--bearer env:NAME"


_KINDS_OF_10: Final = {
    "apiKeySecurityScheme": "apiKey",
    "httpAuthSecurityScheme": "http",
    "oauth2SecurityScheme": "oauth2",
    "openIdConnectSecurityScheme": "openIdConnect",
}
"The fields of 1.0, with the types that 0.3 has in their place."


def _scheme(card: Any) -> tuple[str, Any]:
    """Return the name and the address of the first scheme for programs, if any."""
    for name, scheme in _object(card, "securitySchemes").items():
        # 1.0 has a scheme under the name of its kind.
        for form in (_object(scheme, "oauth2SecurityScheme"), scheme):
            flow = _object(_object(form, "flows"), "clientCredentials")
            if "tokenUrl" in flow:
                return name, flow["tokenUrl"]
    return "", None


def _scopes(card: Any, name: str) -> tuple[str, ...]:
    """Return the scopes that the card wants for a scheme, the first alternative."""
    for key in ("security", "securityRequirements"):
        wanted = card.get(key) if isinstance(card, dict) else None
        for one in wanted if isinstance(wanted, list) else ():
            schemes = _object(one, "schemes") or one
            found = schemes.get(name) if isinstance(schemes, dict) else None
            listed = found.get("list") if isinstance(found, dict) else found
            if isinstance(listed, list):
                return tuple(scope for scope in listed if isinstance(scope, str))
    return ()


def _object(value: Any, name: str) -> dict[str, Any]:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


class OAuthTokens(httpx2.Auth):
    """Puts a token on each request; a new one when it ends or is refused."""

    def __init__(
        self,
        url: Url,
        scopes: tuple[str, ...],
        spec: AttachmentSpec,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._scopes = scopes
        self._spec = spec
        self._clock = clock
        self._token = ""
        self._until = 0.0
        self._lock = asyncio.Lock()

    def sync_auth_flow(
        self, request: httpx2.Request
    ) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Refuse, since a token is fetched on the event loop.

        Without this a client that is not asynchronous would send no token at all.

        Raises:
            RuntimeError: Always; our clients are asynchronous.
        """
        raise RuntimeError("tokens are fetched by asynchronous clients alone")

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send a request with a token, and once more if that counts no longer."""
        token = await self.token()
        request.headers["Authorization"] = f"Bearer {token}"
        answer = yield request
        if answer.status_code == 401:
            # Nothing ran: the request was turned away.
            request.headers["Authorization"] = f"Bearer {await self.token(not_=token)}"
            yield request

    async def token(self, *, not_: str = "") -> str:
        """Return a token that counts.

        Args:
            not_: One that was refused.

        Raises:
            AttachmentError: There is none to be had.
        """
        async with self._lock:
            if self._clock() >= self._until or self._token == not_:
                self._token, lifetime = await self._fetch()
                self._until = self._clock() + lifetime * EARLY
            return self._token

    async def _fetch(self) -> tuple[str, float]:
        headers, form = await asyncio.to_thread(self._request)
        endpoint = HttpEndpoint(
            self._url, self._spec.without_secrets, max_answer=MAX_ANSWER
        )
        await endpoint.open()
        try:
            answer = await endpoint.ask(
                "POST", self._url, headers=headers, content=urlencode(form).encode()
            )
            found = answer.json() if answer.status == 200 else {}
        except (JsonError, ToolError) as exc:
            raise AttachmentError(f"no token of {self._url.origin}: {exc}") from exc
        finally:
            await endpoint.close()
        if answer.status != 200:
            raise AttachmentError(f"{self._url.origin} gives no token: {answer.phrase}")
        return _read(found, self._url)

    def _request(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return headers and form of a request for a token; reads the secrets anew."""
        spec = self._spec
        form = {"grant_type": "client_credentials"}
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Accept": "application/json",
        }
        if spec.oauth_assertion:
            assertion = read_secret(spec.oauth_assertion, folder=spec.cwd)
            form = {"grant_type": JWT_BEARER, "assertion": assertion}
            if spec.oauth_client:
                form["client_id"] = spec.oauth_client
        if spec.oauth_secret:
            secret = read_secret(spec.oauth_secret, folder=spec.cwd)
            pair = f"{quote_plus(spec.oauth_client)}:{quote_plus(secret)}"
            coded = base64.b64encode(pair.encode()).decode()
            headers["Authorization"] = f"Basic {coded}"
        if self._scopes:
            form["scope"] = " ".join(self._scopes)
        return headers, form


def _read(found: Any, url: Url) -> tuple[str, float]:
    token = found.get("access_token") if isinstance(found, dict) else None
    kind = found.get("token_type", "bearer") if isinstance(found, dict) else None
    if (
        not isinstance(token, str)
        or not 0 < len(token) <= MAX_TOKEN
        or not (token.isascii() and token.isprintable())
        or not isinstance(kind, str)
        or kind.lower() != "bearer"
    ):
        raise AttachmentError(f"{url.origin} gives no bearer token")
    said = found.get("expires_in", LIFETIME)
    is_number = isinstance(said, int | float) and not isinstance(said, bool)
    return token, float(said) if is_number and said > 0 else LIFETIME
