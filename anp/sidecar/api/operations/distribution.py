"""Protocols that are passed on: in bundles, and under a URI (consensus protocols)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from anp.sidecar.api.operations.protocols import ROLE
from anp.sidecar.api.requests import Uri, did_of, peer_query, switch
from anp.sidecar.api.table import JSON_TYPE, STRICT, Media, get, post
from anp.sidecar.bundles.format import MAX_BUNDLE
from anp.sidecar.consensus.registry import KnownProtocol
from anp.sidecar.daemon import Daemon
from anp.sidecar.library.views import view_of
from cache.records.records import AgreementRole as StoredRole
from cache.records.records import Count, Hash
from negotiation.need import Role

__all__ = ["DistributionOperations"]

HALF = replace(ROLE, text="Only this half; both when left out.")
PEER = peer_query("The peer that is meant: name, DID or `URL#DID`.")
WITH_DID = switch("did", "1: say who exported it.")
WITH_TESTS = switch("tests", "0: leave out the tests.")
WRONG = (404, 409, 422, 424)
"Problems of an operation on URIs."


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishBody:
    """A request to put an agreed protocol under a URI (ANP-95)."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    protocol: Annotated[str, Field(min_length=1, max_length=64)]
    "Its hash, or the beginning of it."

    uri: Uri
    "A URI of the owner's, of this version alone."

    version: Annotated[str, Field(max_length=64)] = "1.0"
    "For people."

    summary: Annotated[str, Field(max_length=1024)] = ""
    "One line for people."


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpublishBody:
    """A request to take a URI back."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    uri: Uri
    "The URI."


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedHalf:
    """A half of a bundle that was tried and is used on new channels."""

    role: StoredRole
    revision: Count
    origin: str
    capabilities: Sequence[str]
    "The capabilities that it may call."

    peers: Sequence[str]
    "DIDs of the peers whose agreements use it now."

    replaced: Sequence[int]
    "Revisions that serve no peer any more."


@dataclass(frozen=True, slots=True)
class ImportedBundle:
    """The halves that were imported of a protocol."""

    hash: Hash
    halves: Sequence[ImportedHalf]


@dataclass(frozen=True, slots=True)
class KnownProtocols:
    """The protocols that are known by a URI."""

    publishes: bool
    "True when peers are shown a list of those that are published."

    protocols: Sequence[KnownProtocol]


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A protocol was put under a URI."""

    uri: str
    hash: Hash
    version: str
    listed: bool
    "True when any peer may see it; the owner may have said otherwise."


@dataclass(frozen=True, slots=True)
class Unpublished:
    """A URI was taken back."""

    uri: str
    hash: Hash


class DistributionOperations:
    """Operations on bundles and on consensus protocols."""

    tag = "protocols"

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    @post(
        "/v1/protocols/import",
        ImportedBundle,
        raw_body=MAX_BUNDLE,
        query=(HALF, PEER),
        problems=(404, 409, 424),
    )
    async def import_protocol(self, request: Request, body: bytes) -> ImportedBundle:
        """Try the halves of a bundle, and use them on new channels."""
        # As it came: a bundle is refused when a byte of it is off.
        imported = await self._daemon.bundles.take_in(
            body, role=_role(request), peer_did=await self._peer(request)
        )
        halves = [
            view_of(
                ImportedHalf,
                one.half,
                capabilities=sorted(one.half.capabilities),
                peers=sorted({made.peer_did for made in one.agreements}),
                replaced=one.replaced,
            )
            for one in imported
        ]
        return ImportedBundle(imported[0].half.hash, halves)

    @get(
        "/v1/protocols/{prefix}/export",
        Media(text="The bundle.", media_type=JSON_TYPE),
        query=(HALF, PEER, WITH_DID, WITH_TESTS),
    )
    async def export_protocol(self, request: Request) -> Response:
        """Write a protocol and our halves of it into a bundle."""
        query = request.query_params
        data = await self._daemon.bundles.export(
            request.path_params["prefix"],
            role=_role(request),
            peer_did=await self._peer(request),
            with_did=query.get("did") == "1",
            with_tests=query.get("tests") != "0",
        )
        return Response(data, media_type=JSON_TYPE)

    @get("/v1/consensus", KnownProtocols)
    async def list_consensus(self, request: Request) -> KnownProtocols:
        """List the protocols that are known by a URI, and what peers are shown."""
        shown = await self._daemon.consensus.shown()
        return KnownProtocols(self._daemon.config.publishes, shown)

    @post("/v1/consensus/publish", Published, body=PublishBody, problems=WRONG)
    async def publish_protocol(self, request: Request, body: PublishBody) -> Published:
        """Put an agreed protocol under a URI, so that others need not negotiate."""
        digest = await asyncio.to_thread(self._daemon.store.find_hash, body.protocol)
        entry = await self._daemon.consensus.publish(
            digest, body.uri, version=body.version, summary=body.summary
        )
        return view_of(Published, entry, listed=self._daemon.config.publishes)

    @post("/v1/consensus/unpublish", Unpublished, body=UnpublishBody, problems=WRONG)
    async def unpublish_protocol(
        self, request: Request, body: UnpublishBody
    ) -> Unpublished:
        """Take a URI back; agreements that came of it stay."""
        return view_of(Unpublished, await self._daemon.consensus.unpublish(body.uri))

    async def _peer(self, request: Request) -> str | None:
        peer = request.query_params.get(PEER.name)
        return None if peer is None else await did_of(self._daemon, peer)


def _role(request: Request) -> Role | None:
    text = request.query_params.get(ROLE.name)
    return None if text is None else Role(text)
