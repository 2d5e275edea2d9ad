"""Agreed protocols in the local API."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from anp.errors import UnknownError
from anp.sidecar.api.requests import EmptyBody, PeerName, did_of, peer_query
from anp.sidecar.api.table import (
    STRICT,
    LocalScope,
    Media,
    Query,
    get,
    integer_of,
    post,
)
from anp.sidecar.daemon import Daemon
from anp.sidecar.library.prune_rules import DEFAULT_AGE
from anp.sidecar.library.retest import Retester
from anp.sidecar.library.revocation import Approved, ProtocolDesk, Pruned, Revoked
from anp.sidecar.library.state import STATES, view_of
from anp.sidecar.library.views import (
    MAX_PAGE,
    PAGE,
    Agreement,
    Code,
    Library,
    ProtocolDetails,
    UsageCounts,
    find_hash,
)
from anp.sidecar.library.written import written_details, written_rows
from cache.records.records import MAX_REASON, AgreementRole, Count, Hash

MAX_AFTER = 4096
"Longest place in the list, in characters."

MAX_REVISION = 99_999_999
"Highest number of a revision."

MAX_AGE = 100 * 366 * 86_400.0
"Longest age, in seconds."

ROLE = Query(
    name="role",
    text="Only the code for this role.",
    schema={"type": "string", "enum": [role.value for role in AgreementRole]},
)
REVISION = Query(
    name="revision",
    text="Only this revision.",
    schema={"type": "integer", "minimum": 0, "maximum": MAX_REVISION},
)
LIST_QUERY = (
    Query(
        name="limit",
        text="Most entries of the page.",
        schema={"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": PAGE},
    ),
    Query(
        name="after",
        text="`next` of the page before.",
        schema={"type": "string", "maxLength": MAX_AFTER},
    ),
    peer_query("Only with this peer: a name, DID or `URL#DID`."),
    ROLE,
    Query(
        name="state",
        text="Only in this state.",
        schema={"type": "string", "enum": list(STATES)},
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutPeerBody:
    """A protocol with all peers, or with one."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    peer: PeerName | None = None
    "For this peer alone; null is for all."


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeBody:
    """A protocol is to be revoked."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    peer: PeerName | None = None
    "For this peer alone; null is for all."

    reason: Annotated[str, Field(max_length=MAX_REASON)] = ""
    "Reason for the owner's record; it is never sent."

    text_only: bool = False
    "Refuse the text alone; its capabilities stay open by their names and other texts."


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneBody:
    """The age of entries that are to be deleted."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    older_than: Annotated[float, Field(ge=0, le=MAX_AGE)] = DEFAULT_AGE
    "Seconds since it was used or made."

    dry_run: bool = False
    "Only list the entries; delete nothing."


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocols:
    """A page of agreements, and code for any peer, with the counts of all calls."""

    protocols: Sequence[Agreement]
    usage: UsageCounts
    next: str | None
    "`after` for the next page; null at the end."


@dataclass(frozen=True, slots=True)
class ProtocolCode:
    """Our code for a protocol."""

    hash: Hash
    code: Sequence[Code]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptTests:
    """The tests that are kept with an agreement, and their last run."""

    role: AgreementRole
    peer: str | None
    revision: Count
    last_run: dict[str, Any] | None
    kept: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ProtocolTests:
    """The tests of each agreement on a protocol."""

    hash: Hash
    tests: Sequence[KeptTests]


@dataclass(frozen=True, slots=True)
class ProtocolTestRuns:
    """The outcome of tests that were run again."""

    hash: Hash
    passed: bool
    runs: Sequence[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Released:
    """A quarantine or the hour after a failed test case was ended."""

    hash: Hash
    released: bool
    "False when there was nothing to end."


class ProtocolOperations:
    """Operations on agreed protocols, without bundles and URIs."""

    tag = "protocols"

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._store = daemon.store
        self._library = Library(daemon.store, daemon.sandbox, daemon.exposure)
        self._desk = ProtocolDesk(
            store=daemon.store,
            sandbox=daemon.sandbox,
            requesters=daemon.binder.requesters,
            provider=daemon.provider,
            enforcer=daemon.enforcer,
            exposure=daemon.exposure,
            consensus=daemon.consensus,
            owner=daemon.agreer.desk,
        )
        self._retester = Retester(
            store=daemon.store,
            workshop=daemon.workshop,
            exposure=daemon.exposure,
            binder=daemon.binder,
            finder=daemon.finder,
        )

    @get(
        "/v1/protocols",
        Protocols,
        query=LIST_QUERY,
        problems=(404,),
        scope=LocalScope.AGENT,
    )
    async def list_protocols(self, request: Request) -> Protocols:
        """List agreements, and code for any peer, in pages."""
        await self._daemon.uses.flush()
        query = request.query_params
        found, following = await asyncio.to_thread(
            self._library.page,
            after=query.get("after", ""),
            limit=integer_of(request, "limit", PAGE),
            peer=await self._peer(query.get("peer")),
            role=query.get("role"),
            state=query.get("state"),
        )
        registry = self._daemon.consensus.registry.all()
        first = not query.get("after") and not query.get("peer")
        if first and query.get("state") in {None, "active"}:
            found += await asyncio.to_thread(
                written_rows, self._store, registry, role=query.get("role")
            )
        named: dict[str, list[str]] = {}
        for known in registry:
            named.setdefault(known.hash, []).append(known.uri)
        found = [replace(one, uris=named.get(one.hash, ())) for one in found]
        usage = UsageCounts.of(await asyncio.to_thread(self._store.usage))
        return Protocols(protocols=found, usage=usage, next=following)

    @get("/v1/protocols/usage", UsageCounts, scope=LocalScope.OWNER)
    async def get_usage(self, request: Request) -> UsageCounts:
        """Count the calls with and without a negotiation."""
        await self._daemon.uses.flush()
        return UsageCounts.of(await asyncio.to_thread(self._store.usage))

    @post("/v1/protocols/prune", Pruned, body=PruneBody, scope=LocalScope.OWNER)
    async def prune_protocols(self, request: Request, body: PruneBody) -> Pruned:
        """Delete agreements, code and texts that were not used for long."""
        await self._daemon.uses.flush()
        return await self._desk.prune(older_than=body.older_than, dry_run=body.dry_run)

    @get("/v1/protocols/{prefix}", ProtocolDetails, scope=LocalScope.OWNER)
    async def get_protocol(self, request: Request) -> ProtocolDetails:
        """Show an agreed protocol."""
        shown = await self._details(request)
        named = self._daemon.consensus.registry.of_hash(shown.hash)
        return replace(shown, uris=[one.uri for one in named])

    @get(
        "/v1/protocols/{prefix}/text",
        Media(text="The text.", media_type="text/markdown"),
        scope=LocalScope.OWNER,
    )
    async def get_text(self, request: Request) -> Response:
        """Give the protocol text, byte for byte."""
        prefix = request.path_params["prefix"]
        for known in self._daemon.consensus.registry.all():
            if known.hash == prefix:
                return Response(known.text.encode("utf-8"), media_type="text/markdown")
        record = await asyncio.to_thread(self._store.document, prefix)
        if record is None:
            raise UnknownError(
                f"no protocol text has a hash that begins with {prefix[:80]!r}; "
                "`anpd protocols list` shows all hashes"
            )
        return Response(record.text.encode("utf-8"), media_type="text/markdown")

    @get(
        "/v1/protocols/{prefix}/code",
        ProtocolCode,
        query=(ROLE, REVISION),
        scope=LocalScope.OWNER,
    )
    async def get_code(self, request: Request) -> ProtocolCode:
        """Give our code: source, origin and the capabilities that it may call."""
        query = request.query_params
        role, revision = query.get("role"), query.get("revision")
        shown = await self._details(request)
        halves = [
            half
            for half in shown.code
            if role in {None, half.role.value}
            and revision in {None, str(half.revision)}
        ]
        return ProtocolCode(shown.hash, halves)

    @get("/v1/protocols/{prefix}/tests", ProtocolTests, scope=LocalScope.OWNER)
    async def get_tests(self, request: Request) -> ProtocolTests:
        """Give the tests of each agreement, and their last results."""
        shown = await self._details(request)
        tests = [
            view_of(KeptTests, agreement, kept=kept)
            for agreement, kept in zip(shown.agreements, shown.tests, strict=True)
        ]
        return ProtocolTests(shown.hash, tests)

    @post(
        "/v1/protocols/{prefix}/test",
        ProtocolTestRuns,
        body=AboutPeerBody,
        problems=(424,),
        scope=LocalScope.OWNER,
    )
    async def test_protocol(
        self, request: Request, body: AboutPeerBody
    ) -> ProtocolTestRuns:
        """Run the kept test cases again, with our own code alone or with a peer."""
        prefix = request.path_params["prefix"]
        digest = await asyncio.to_thread(find_hash, self._store, prefix)
        peer_did = await self._peer(body.peer)
        if body.peer is None or peer_did is None:
            runs = await self._retester.offline(digest)
        else:
            runs = await self._retester.with_peer(digest, body.peer, peer_did)
        shown = [
            {
                "role": run.half.role.value,
                "peer": run.agreement.peer_did if run.agreement else None,
                **run.to_json(),
            }
            for run in runs
        ]
        return ProtocolTestRuns(digest, all(run["passed"] for run in shown), shown)

    @post(
        "/v1/protocols/{prefix}/approve",
        Approved,
        body=AboutPeerBody,
        scope=LocalScope.OWNER,
    )
    async def approve_protocol(self, request: Request, body: AboutPeerBody) -> Approved:
        """End a revocation or quarantine, or accept in a negotiation that waits."""
        return await self._desk.approve(
            request.path_params["prefix"], peer_did=await self._peer(body.peer)
        )

    @post(
        "/v1/protocols/{prefix}/revoke",
        Revoked,
        body=RevokeBody,
        scope=LocalScope.OWNER,
    )
    async def revoke_protocol(self, request: Request, body: RevokeBody) -> Revoked:
        """Revoke a protocol: its channels close, and it is refused from now on."""
        return await self._desk.revoke(
            request.path_params["prefix"],
            peer_did=await self._peer(body.peer),
            reason=body.reason,
            text_only=body.text_only,
        )

    @post(
        "/v1/protocols/{prefix}/release",
        Released,
        body=EmptyBody,
        scope=LocalScope.OWNER,
    )
    async def release_protocol(self, request: Request, body: EmptyBody) -> Released:
        """End a quarantine, or agree again on a protocol whose test cases failed."""
        prefix = request.path_params["prefix"]
        digest = await asyncio.to_thread(self._store.find_hash, prefix)
        failed = await asyncio.to_thread(self._store.release_failed, digest)
        return Released(digest, self._daemon.sandbox.release(digest) or failed > 0)

    async def _details(self, request: Request) -> ProtocolDetails:
        await self._daemon.uses.flush()
        prefix = request.path_params["prefix"]
        registry = self._daemon.consensus.registry.all()
        written = await asyncio.to_thread(
            written_details, self._store, registry, prefix
        )
        if written is not None:
            return written
        return await asyncio.to_thread(self._library.details, prefix)

    async def _peer(self, text: str | None) -> str | None:
        return None if text is None else await did_of(self._daemon, text)
