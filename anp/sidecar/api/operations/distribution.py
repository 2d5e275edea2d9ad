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
from anp.sidecar.api.table import JSON_TYPE, STRICT, LocalScope, Media, get, post
from anp.sidecar.bundles.format import MAX_BUNDLE
from anp.sidecar.consensus.registry import KnownProtocol
from anp.sidecar.daemon import Daemon
from anp.sidecar.library.state import view_of
from cache.records.records import AgreementRole as StoredRole
from cache.records.records import Count, Hash
from negotiation.need import Role

HALF = replace(ROLE, text="Only the code for this role; both roles when left out.")
PEER = peer_query("The peer: name, DID or `URL#DID`.")
WITH_DID = switch("did", "1: add the DID of this daemon.")
WITH_TESTS = switch("tests", "0: leave out the tests.")
WRONG = (404, 409, 422, 424)
"Problems of an operation on URIs."


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishBody:
    """An agreed protocol is to be published under a URI (ANP-95)."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    protocol: Annotated[str, Field(min_length=1, max_length=64)]
    "Its hash, or the beginning of it."

    uri: Uri
    "The owner's URI for exactly this version."

    version: Annotated[str, Field(max_length=64)] = "1.0"
    "Version, shown to people."

    summary: Annotated[str, Field(max_length=1024)] = ""
    "Description in one line."


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpublishBody:
    """A URI is to be withdrawn."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    uri: Uri
    "The URI."


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedCode:
    """Code of a bundle that passed its checks and is used on new channels."""

    role: StoredRole
    revision: Count
    origin: str
    capabilities: Sequence[str]
    "The capabilities that it may call."

    peers: Sequence[str]
    "DIDs of the peers whose agreements use it now."

    replaced: Sequence[int]
    "Revisions that are no longer used."


@dataclass(frozen=True, slots=True)
class ImportedBundle:
    """The code that was imported for a protocol."""

    hash: Hash
    code: Sequence[ImportedCode]


@dataclass(frozen=True, slots=True)
class KnownProtocols:
    """The protocols that are known by a URI."""

    publishes: bool
    "True when peers can read a list of the published ones."

    protocols: Sequence[KnownProtocol]


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A protocol was published under a URI."""

    uri: str
    hash: Hash
    version: str
    listed: bool
    "True when it is in the list that peers can read."


@dataclass(frozen=True, slots=True)
class Unpublished:
    """A URI was withdrawn."""

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
        scope=LocalScope.OWNER,
    )
    async def import_protocol(self, request: Request, body: bytes) -> ImportedBundle:
        """Check the code of a bundle, and use it on new channels."""
        # As it came: a bundle is refused when a byte of it is off.
        imported = await self._daemon.bundles.take_in(
            body, role=_role(request), peer_did=await self._peer(request)
        )
        halves = [
            view_of(
                ImportedCode,
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
        scope=LocalScope.OWNER,
    )
    async def export_protocol(self, request: Request) -> Response:
        """Write a protocol and our code for it into a bundle."""
        query = request.query_params
        data = await self._daemon.bundles.export(
            request.path_params["prefix"],
            role=_role(request),
            peer_did=await self._peer(request),
            with_did=query.get("did") == "1",
            with_tests=query.get("tests") != "0",
        )
        return Response(data, media_type=JSON_TYPE)

    @get("/v1/consensus", KnownProtocols, scope=LocalScope.AGENT)
    async def list_consensus(self, request: Request) -> KnownProtocols:
        """List the protocols that are known by a URI: published and built-in ones."""
        shown = await self._daemon.consensus.shown()
        return KnownProtocols(self._daemon.config.publishes, shown)

    @post(
        "/v1/consensus/publish",
        Published,
        body=PublishBody,
        problems=WRONG,
        scope=LocalScope.OWNER,
    )
    async def publish_protocol(self, request: Request, body: PublishBody) -> Published:
        """Publish an agreed protocol under a URI, so that peers need not negotiate."""
        digest = await asyncio.to_thread(self._daemon.store.find_hash, body.protocol)
        entry = await self._daemon.consensus.publish(
            digest, body.uri, version=body.version, summary=body.summary
        )
        return view_of(Published, entry, listed=self._daemon.config.publishes)

    @post(
        "/v1/consensus/unpublish",
        Unpublished,
        body=UnpublishBody,
        problems=WRONG,
        scope=LocalScope.OWNER,
    )
    async def unpublish_protocol(
        self, request: Request, body: UnpublishBody
    ) -> Unpublished:
        """Withdraw a URI; agreements that used it stay."""
        return view_of(Unpublished, await self._daemon.consensus.unpublish(body.uri))

    async def _peer(self, request: Request) -> str | None:
        peer = request.query_params.get(PEER.name)
        return None if peer is None else await did_of(self._daemon, peer)


def _role(request: Request) -> Role | None:
    text = request.query_params.get(ROLE.name)
    return None if text is None else Role(text)
