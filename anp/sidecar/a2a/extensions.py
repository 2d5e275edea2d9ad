"""The header that activates extensions, echoed for those that are known (INT-Q6)."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from anp.protocols.a2a.words import INTENT_URI

HEADERS: Final = ("A2A-Extensions", "X-A2A-Extensions")
"The header in 1.0 and in 0.3."

KNOWN: Final = (INTENT_URI,)
"URIs of the extensions that are honoured; none has to be asked for."


def with_extensions(app: ASGIApp) -> ASGIApp:
    """Return an application that says which of the wanted extensions are on."""

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await app(scope, receive, send)
        headers = Headers(scope=scope)
        found = {name: _known(headers.getlist(name)) for name in HEADERS}

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                for name, uris in found.items():
                    if uris:
                        answer[name] = ", ".join(uris)
            await send(message)

        return await app(scope, receive, told)

    return wrapped


def _known(values: list[str]) -> list[str]:
    asked = {one.strip() for value in values for one in value.split(",")}
    return [uri for uri in KNOWN if uri in asked]
