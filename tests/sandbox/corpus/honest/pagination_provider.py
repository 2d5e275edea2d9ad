# kind: generator half: pagination over several capability calls
"""Provider half: collects all pages of a listing before it answers."""

from __future__ import annotations

import json
from typing import Any, Generator

PAGE_SIZE = 3
MAX_PAGES = 5


def _summary(items: list[dict[str, Any]], truncated: bool) -> dict[str, Any]:
    return {
        "count": len(items),
        "ids": [item["id"] for item in items],
        "truncated": truncated,
    }


def handle_request(data: bytes) -> Generator[Any, Any, bytes]:
    request = json.loads(data)
    wanted = request.get("max", float("inf"))
    items: list[dict[str, Any]] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        params: dict[str, Any] = {"collection": request["collection"], "limit": PAGE_SIZE}
        if cursor:
            params["cursor"] = cursor
        page = yield call("list_items", params)
        items += page["items"]
        cursor = page.get("next")
        if cursor is None or len(items) >= wanted:
            break
    truncated = cursor is not None
    if len(items) > wanted:
        del items[wanted:]
    return json.dumps(_summary(items, truncated), separators=(",", ":")).encode()
