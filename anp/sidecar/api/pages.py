"""Long lists of the local API, page by page. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from starlette.requests import Request

from anp.sidecar.api.problems import ApiError
from anp.sidecar.api.table import Query, integer_of

__all__ = ["PAGE_QUERY", "page_of"]

MAX_PAGE: Final = 1_000
"Most entries of one page."

DEFAULT_PAGE: Final = 1_000
"Entries of a page when nothing is said."

PAGE_QUERY: Final = (
    Query(
        name="limit",
        text="Most entries of the page.",
        schema={
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_PAGE,
            "default": DEFAULT_PAGE,
        },
    ),
    Query(
        name="after",
        text="`next` of the page before.",
        schema={"type": "string", "minLength": 1, "maxLength": 2048},
    ),
)
"The query parameters of a list."


def page_of(
    request: Request,
    name: str,
    entries: Sequence[dict[str, Any]],
    key: Callable[[dict[str, Any]], str],
) -> dict[str, Any]:
    """Return the page of `entries` that a request asks for.

    Args:
        name: What the answer calls the entries.
        key: Names an entry, so that a page goes on where the one before ended also
            when entries came or went meanwhile.

    Raises:
        ApiError: The entry that `after` names is gone; the list has to be read anew.
    """
    limit = integer_of(request, "limit", DEFAULT_PAGE)
    after = request.query_params.get("after")
    start = 0
    if after is not None:
        places = [place for place, entry in enumerate(entries) if key(entry) == after]
        if not places:
            raise ApiError(400, "after: no such entry any more; begin again without it")
        start = places[0] + 1
    page = list(entries[start : start + limit])
    more = start + limit < len(entries)
    return {name: page, "next": key(page[-1]) if more else None}
