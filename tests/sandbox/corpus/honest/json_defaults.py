# kind: JSON with defaults, optional and deprecated fields
"""Search requests with defaults for everything that may be left out."""

import json
from copy import deepcopy
from typing import Any, Final

DEFAULTS: Final[dict[str, Any]] = {
    "page": 1,
    "page_size": 20,
    "sort": {"field": "created", "descending": True},
    "filters": [],
    "locale": "en",
}
MAX_PAGE_SIZE: Final = 100


def _merge(base: dict[str, Any], override: dict[str, Any]) -> dict[str, Any]:
    """Merge `override` into `base` recursively, without changing either."""
    merged = deepcopy(base)
    for key, value in override.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = _merge(merged[key], value)
        elif value is not None:
            merged[key] = value
    return merged


def parse_request(data: bytes) -> dict[str, Any]:
    raw: dict[str, Any] = json.loads(data) if data.strip() else {}
    if (limit := raw.pop("limit", None)) is not None:
        # "limit" is the old name of "page_size"
        raw.setdefault("page_size", limit)
    request = _merge(DEFAULTS, raw)
    request["page_size"] = max(1, min(int(request["page_size"]), MAX_PAGE_SIZE))
    if request["page"] < 1:
        raise ValueError(f"page must be >= 1, got {request['page']}")
    request["offset"] = (request["page"] - 1) * request["page_size"]
    return request


def build_request(query: str, *, page: int = 1, **options: Any) -> str:
    payload = {"query": query, "page": page} | options
    return json.dumps(payload, sort_keys=True)


def build_simple_request(query: str, options: dict[str, Any] | None = None) -> str:
    return build_request(query, **(options or {}))
