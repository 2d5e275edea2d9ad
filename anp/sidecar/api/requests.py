"""Parts of requests that several operations share: peers, pages of lists, no body."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, TypeVar

from pydantic import ConfigDict, Field
from starlette.requests import Request

from anp.sidecar.api.problems import ApiError
from anp.sidecar.api.table import STRICT, Query, integer_of
from anp.sidecar.config.lookup import canonical_peer
from anp.sidecar.daemon import Daemon

PeerName = Annotated[str, Field(min_length=1, max_length=2048)]
"A peer as its owner writes it: its name, DID, URL or `URL#DID`."

Uri = Annotated[str, Field(min_length=1, max_length=2048)]
"The URI of a consensus protocol."

LongText = Annotated[str, Field(min_length=1, max_length=65_536)]
"Words for a peer."

T = TypeVar("T")

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


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyBody:
    """Nothing is said; `{}` has to be sent, so that no foreign page can."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerBody:
    """The peer that something is said about."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    peer: PeerName
    "Name, DID, URL or `URL#DID`."


def peer_query(text: str, *, required: bool = False) -> Query:
    """Return the query parameter that names a peer."""
    schema = {"type": "string", "minLength": 1, "maxLength": 2048}
    return Query(name="peer", text=text, schema=schema, required=required)


def switch(name: str, text: str) -> Query:
    """Return a query parameter that is 0 or 1."""
    return Query(name=name, text=text, schema={"type": "string", "enum": ["0", "1"]})


def page_of(
    request: Request, entries: Sequence[T], key: Callable[[T], str]
) -> tuple[Sequence[T], str | None]:
    """Return the page of `entries` that a request asks for, and where the next begins.

    Args:
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
            raise ApiError(
                400, "after: that entry no longer exists; begin again without `after`"
            )
        start = places[0] + 1
    page = entries[start : start + limit]
    more = start + limit < len(entries)
    return page, key(page[-1]) if more else None


async def did_of(daemon: Daemon, peer: str) -> str:
    """Return the canonical DID of a peer, as its owner writes it.

    Raises:
        CallError: Nothing is known by that name.
    """
    return await asyncio.to_thread(canonical_peer, daemon.book, daemon.store, peer)
