"""The calls about which agents at a URL may send updates, each by its own token."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterator

from anp.errors import CallError
from anp.sidecar.attachments.assignment import Assignment

logger = logging.getLogger(__name__)

TOKEN_BYTES = 32
"Random bytes of a token: 256 bits."


class UpdateDesk:
    """Knows which token stands for which call, and keeps of each a hash alone."""

    def __init__(self) -> None:
        """Begin without a listener; then agents are offered no updates."""
        self.opener: Callable[[], Awaitable[str]] | None = None
        "Opens the listener unless it is open, and returns the URL of its root."

        self._open: dict[bytes, Assignment] = {}

    async def url(self, assignment: Assignment) -> str | None:
        """Return where updates of a call go; None if there is no listener."""
        if self.opener is None:
            return None
        try:
            return f"{await self.opener()}/updates/{assignment.id}"
        except CallError as exc:
            logger.warning("no listener for updates reason=%s", exc.detail)
            return None

    @contextlib.contextmanager
    def admitting(self, assignment: Assignment) -> Iterator[str]:
        """Let updates of a call in for a block; yield the token for them."""
        token = secrets.token_urlsafe(TOKEN_BYTES)
        key = _hash(token)
        self._open[key] = assignment
        try:
            yield token
        finally:
            del self._open[key]

    def find(self, name: str, token: str) -> Assignment | None:
        """Return the open call of a name and a token; None for all others alike."""
        found = self._open.get(_hash(token))
        if found is None or found.id != name or found.ending:
            return None
        return found


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
