"""The answer of a server over HTTP: its head, and its body when somebody reads it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import httpx2

from anp.interaction.states import TaskState
from anp.sidecar.attachments.attachment import ToolError
from anp.sidecar.attachments.urls import Url, header_url
from negotiation.errors import JsonError
from negotiation.strict_json import parse_json

TASK_HEADER: Final = "Anpd-Task"
"""Header by which a service says in an answer of 4xx that it hands the task back: its
value is then `rejected`. Without it 409 and 422 are errors of the application."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The answer of a server, read to its end."""

    status: int
    "HTTP status."

    content_type: str
    "Media type in lower case without parameters; empty if none was said."

    charset: str
    "Character set that was said, or `utf-8`."

    body: bytes
    "At most as large as was asked for."

    hands_back: bool = False
    "True when the header `Anpd-Task: rejected` stands in it."

    @property
    def phrase(self) -> str:
        """The status in words."""
        try:
            return f"{self.status} {HTTPStatus(self.status).phrase}"
        except ValueError:
            return str(self.status)

    def json(self) -> Any:
        """Return the JSON in the body.

        Raises:
            JsonError: It is none.
        """
        return parse_json(self.body, max_size=len(self.body))

    def text(self) -> str:
        """Return the body as text.

        Raises:
            CapabilityError: 502, it is none.
        """
        try:
            return self.body.decode(self.charset)
        except (LookupError, UnicodeDecodeError):
            raise ToolError(502, "the service's answer is no text") from None

    def reason(self) -> str:
        """Return in one line what an answer that is no success says."""
        try:
            said = self.json() if is_json(self.content_type) else None
        except JsonError:
            said = None
        return _words(said) or f"the service answered {self.phrase}"


class OpenAnswer:
    """An answer whose body is still to come, as long as its connection is kept."""

    def __init__(self, response: httpx2.Response, url: Url) -> None:
        self._response = response
        said = response.headers.get("content-type", "")
        media_type, _, rest = said.partition(";")
        charset = rest.partition("charset=")[2].partition(";")[0].strip(" \"'")
        self.url = url
        "The URL that answered."
        self.status: int = response.status_code
        "HTTP status."
        self.content_type: str = media_type.strip().lower()
        "Media type in lower case without parameters; empty if none was said."
        named = [value for key, value in response.headers.raw if key == b"location"]
        self.location: str = header_url(named[0]) if named else ""
        "Address that the answer names; may be relative."
        self.retry_after: str = response.headers.get("retry-after", "")
        "Seconds or a date after which it may be asked again."
        self._charset: str = charset or "utf-8"
        task = response.headers.get(TASK_HEADER, "")
        self._hands_back = task.strip().lower() == TaskState.REJECTED

    async def read(self) -> HttpAnswer:
        """Read the body to its end."""
        return self.with_body(await self._response.aread())

    def with_body(self, body: bytes) -> HttpAnswer:
        """Return the whole answer with a body that was read."""
        return HttpAnswer(
            self.status, self.content_type, self._charset, body, self._hands_back
        )

    def chunks(self) -> AsyncIterator[bytes]:
        """Return the body as it comes; nothing is read ahead of who takes it."""
        return self._response.aiter_raw()


def is_json(media_type: str) -> bool:
    """Return whether a media type is JSON."""
    return media_type == "application/json" or media_type.endswith("+json")


def _words(said: Any) -> str:
    """Return the message in an error's JSON, as many services write it."""
    if isinstance(said, str):
        return said
    if not isinstance(said, dict):
        return ""
    for name in ("detail", "message", "error", "error_description", "title"):
        found = said.get(name)
        if isinstance(found, str) and found.strip():
            return found
        if isinstance(found, dict) and (inner := _words(found)):
            return inner
        if isinstance(found, list):
            # FastAPI: one entry for each argument that does not fit.
            return "; ".join(_finding(each) for each in found[:5])
    return ""


def _finding(entry: Any) -> str:
    if not isinstance(entry, dict):
        return str(entry)[:100]
    where = entry.get("loc")
    place = ".".join(str(part) for part in where) if isinstance(where, list) else ""
    text = str(entry.get("msg") or entry.get("message") or "does not fit")
    return f"{place}: {text}"[:200] if place else text[:200]
