# kind: envelope with correlation ids and state kept in a class
"""Requests and answers matched by correlation id."""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from typing import Any

logger = logging.getLogger(__name__)


class CorrelationError(LookupError):
    """An answer belongs to no request."""


class Conversation:
    """Numbers requests, remembers the open ones, and matches answers."""

    max_open = 3

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._open: OrderedDict[str, str] = OrderedDict()
        self._counter = 0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._prefix} open={len(self._open)}>"

    @property
    def open_ids(self) -> list[str]:
        return list(self._open)

    def request(self, method: str, **params: Any) -> str:
        self._counter += 1
        identifier = f"{self._prefix}-{self._counter:04d}"
        if len(self._open) >= self.max_open:
            dropped, _ = self._open.popitem(last=False)
            logger.warning("dropped %s", dropped)
        self._open[identifier] = method
        return json.dumps({"id": identifier, "method": method, "params": params})

    def answer(self, text: str) -> dict[str, Any]:
        message = json.loads(text)
        try:
            method = self._open.pop(message["replyTo"])
        except KeyError as exc:
            raise CorrelationError(f"no open request {exc}") from exc
        logger.info("answer to %s (%d open)", method, len(self._open))
        return {"method": method, "result": message.get("result")}


def exchange(requests: list[dict], answers: list[str]) -> dict[str, Any]:
    conversation = Conversation("req")
    sent = [conversation.request(r["method"], **r.get("params", {})) for r in requests]
    received = [conversation.answer(text) for text in answers]
    return {
        "sent": sent,
        "received": received,
        "open": conversation.open_ids,
        "shown": repr(conversation),
    }
