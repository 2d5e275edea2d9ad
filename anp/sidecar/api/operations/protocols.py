"""Agreed protocols in the local API (SIDECAR.md, Local API)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from anp.errors import UnknownError
from anp.sidecar.api.answers import (
    COUNT,
    FLAG,
    HASH,
    NUMBER,
    OBJECT,
    TEXT,
    answer_of,
    maybe,
    ref,
    some,
)
from anp.sidecar.api.bodies import AboutPeerBody, EmptyBody, PruneBody, RevokeBody
from anp.sidecar.api.table import Answer, Operation, Query, body_of, integer_of
from anp.sidecar.config.meaning import canonical_peer
from anp.sidecar.library import views as protocol_views
from anp.sidecar.library.retest import Retester
from anp.sidecar.library.revocation import ProtocolDesk
from anp.sidecar.library.state import STATES, usage_json
from cache.records.records import Role

if TYPE_CHECKING:
    from anp.sidecar.daemon import Daemon

__all__ = ["protocol_operations"]

ONE = "/v1/protocols/{prefix}"

MAX_AFTER = 4096
"Longest place in the list, in characters."

MAX_REVISION = 99_999_999
"Highest number of a revision."

ROLE = Query(
    name="role",
    text="Only this half.",
    schema={"type": "string", "enum": [role.value for role in Role]},
)
LIST_QUERY = (
    Query(
        name="limit",
        text="Most entries of the page.",
        schema={
            "type": "integer",
            "minimum": 1,
            "maximum": protocol_views.MAX_PAGE,
            "default": protocol_views.PAGE,
        },
    ),
    Query(
        name="after",
        text="`next` of the page before.",
        schema={"type": "string", "maxLength": MAX_AFTER},
    ),
    Query(
        name="peer",
        text="Only with this peer: a name, DID or `URL#DID`.",
        schema={"type": "string", "minLength": 1, "maxLength": 2048},
    ),
    ROLE,
    Query(
        name="state",
        text="Only in this state.",
        schema={"type": "string", "enum": list(STATES)},
    ),
)


def protocol_operations(daemon: Daemon) -> list[Operation]:
    """Return the operations on one protocol or all of them, but those of bundles."""
    api = _ProtocolApi(daemon)

    def read(path: str, name: str, summary: str, **more: Any) -> Operation:
        return Operation(
            method="GET",
            path=path,
            name=name,
            summary=summary,
            tag="protocols",
            **more,
        )

    def act(path: str, name: str, summary: str, **more: Any) -> Operation:
        return Operation(
            method="POST",
            path=path,
            name=name,
            summary=summary,
            tag="protocols",
            **{"body": EmptyBody, **more},
        )

    return [
        read(
            "/v1/protocols",
            "listProtocols",
            "List agreements and halves for any peer, in pages.",
            handler=api.protocols,
            answers=(Answer(text="A page of them.", schema=ref("Protocols")),),
            query=LIST_QUERY,
            problems=(404,),
        ),
        read(
            "/v1/protocols/usage",
            "getUsage",
            "Count the calls by what they went through, all together.",
            handler=api.usage,
            answers=(Answer(text="The counts.", schema=ref("Usage")),),
        ),
        act(
            "/v1/protocols/prune",
            "pruneProtocols",
            "Drop what was not used for long; never what is in use or published.",
            handler=api.prune,
            body=PruneBody,
            answers=(
                Answer(
                    text="What went, or would.",
                    schema=answer_of(
                        dry_run=FLAG,
                        older_than=NUMBER,
                        counts=OBJECT,
                        bytes=COUNT,
                        removed=some(OBJECT),
                    ),
                ),
            ),
        ),
        read(
            ONE,
            "getProtocol",
            "Tell everything known about an agreed protocol.",
            handler=api.protocol,
            answers=(Answer(text="The protocol.", schema=ref("Protocol")),),
        ),
        read(
            f"{ONE}/document",
            "getDocument",
            "Give the agreed text, byte for byte.",
            handler=api.document,
            answers=(Answer(text="The text.", media_type="text/markdown"),),
        ),
        read(
            f"{ONE}/code",
            "getCode",
            "Give our halves: source, origin and what they may call.",
            handler=api.code,
            query=(
                ROLE,
                Query(
                    name="revision",
                    text="Only this revision.",
                    schema={"type": "integer", "minimum": 0, "maximum": MAX_REVISION},
                ),
            ),
            answers=(
                Answer(
                    text="The halves.",
                    schema=answer_of(hash=HASH, halves=some(ref("Half"))),
                ),
            ),
        ),
        read(
            f"{ONE}/tests",
            "getTests",
            "Give the tests of each agreement, and what came of them last.",
            handler=api.tests,
            answers=(
                Answer(
                    text="The outcomes.",
                    schema=answer_of(hash=HASH, tests=some(OBJECT)),
                ),
            ),
        ),
        act(
            f"{ONE}/test",
            "testProtocol",
            "Run the kept test cases again, by our halves alone or with a peer.",
            handler=api.test,
            body=AboutPeerBody,
            answers=(
                Answer(
                    text="What was tried, and what came of it.",
                    schema=answer_of(hash=HASH, passed=FLAG, runs=some(OBJECT)),
                ),
            ),
            problems=(424,),
        ),
        act(
            f"{ONE}/approve",
            "approveProtocol",
            "Take back a revocation or a quarantine, or give the word waited for.",
            handler=api.approve,
            body=AboutPeerBody,
            answers=(
                Answer(
                    text="What changed.",
                    schema=answer_of(
                        hash=HASH,
                        peer=maybe(TEXT),
                        revocation_ended=FLAG,
                        quarantine_ended=FLAG,
                        negotiations_accepted=some(TEXT),
                    ),
                ),
            ),
        ),
        act(
            f"{ONE}/revoke",
            "revokeProtocol",
            "Take a protocol back: its channels close, it is refused from now on.",
            handler=api.revoke,
            body=RevokeBody,
            answers=(
                Answer(
                    text="What changed.",
                    schema=answer_of(
                        hash=HASH,
                        peer=maybe(TEXT),
                        revoked=FLAG,
                        channels_closed=COUNT,
                    ),
                ),
            ),
        ),
        act(
            f"{ONE}/release",
            "releaseProtocol",
            "Use a quarantined protocol again, or have one that failed agreed anew.",
            handler=api.release,
            answers=(
                Answer(
                    text="Whether it was held back.",
                    schema=answer_of(hash=HASH, released=FLAG),
                ),
            ),
        ),
    ]


class _ProtocolApi:
    """The handlers, thin: they read the request, ask the desk and show the answer."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._desk = ProtocolDesk(
            store=daemon.store,
            sandbox=daemon.sandbox,
            requesters=daemon.binder.requesters,
            provider=daemon.provider,
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

    # What there is.

    async def protocols(self, request: Request) -> Response:
        await self._daemon.uses.flush()
        query = request.query_params
        peer = query.get("peer")
        found = await asyncio.to_thread(
            protocol_views.protocols,
            self._daemon.store,
            self._daemon.sandbox,
            self._daemon.exposure,
            after=query.get("after", ""),
            limit=integer_of(request, "limit", protocol_views.PAGE),
            peer=await self._peer(peer),
            role=query.get("role"),
            state=query.get("state"),
        )
        found["usage"] = usage_json(await asyncio.to_thread(self._daemon.store.usage))
        return JSONResponse(found)

    async def usage(self, request: Request) -> Response:
        await self._daemon.uses.flush()
        found = await asyncio.to_thread(self._daemon.store.usage)
        return JSONResponse(usage_json(found))

    async def protocol(self, request: Request) -> Response:
        shown = await self._shown(request)
        registry = self._daemon.consensus.registry
        shown["uris"] = [one.uri for one in registry.of_hash(shown["hash"])]
        return JSONResponse(shown)

    async def document(self, request: Request) -> Response:
        prefix = request.path_params["prefix"]
        record = await asyncio.to_thread(self._daemon.store.document, prefix)
        if record is None:
            raise UnknownError(
                f"no protocol's text begins with {prefix[:80]!r}; "
                "`anpd protocols list` shows what there is"
            )
        return Response(record.text.encode("utf-8"), media_type="text/markdown")

    async def code(self, request: Request) -> Response:
        query = request.query_params
        role, revision = query.get("role"), query.get("revision")
        shown = await self._shown(request)
        halves = [
            half
            for half in shown["halves"]
            if role in {None, half["role"]}
            and revision in {None, str(half["revision"])}
        ]
        return JSONResponse({"hash": shown["hash"], "halves": halves})

    async def tests(self, request: Request) -> Response:
        shown = await self._shown(request)
        return JSONResponse(
            {
                "hash": shown["hash"],
                "tests": [
                    {
                        **{name: one[name] for name in ("role", "peer", "revision")},
                        "last_run": one["last_run"],
                        "kept": kept,
                    }
                    for one, kept in zip(
                        shown["agreements"], shown["tests"], strict=True
                    )
                ],
            }
        )

    # What the owner says.

    async def approve(self, request: Request) -> Response:
        body: AboutPeerBody = body_of(request, AboutPeerBody)
        return JSONResponse(
            await self._desk.approve(
                request.path_params["prefix"], peer_did=await self._peer(body.peer)
            )
        )

    async def revoke(self, request: Request) -> Response:
        body: RevokeBody = body_of(request, RevokeBody)
        return JSONResponse(
            await self._desk.revoke(
                request.path_params["prefix"],
                peer_did=await self._peer(body.peer),
                reason=body.reason,
            )
        )

    async def test(self, request: Request) -> Response:
        body: AboutPeerBody = body_of(request, AboutPeerBody)
        digest = await asyncio.to_thread(
            protocol_views.find_hash, self._daemon.store, request.path_params["prefix"]
        )
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
        passed = all(run["passed"] for run in shown)
        return JSONResponse({"hash": digest, "passed": passed, "runs": shown})

    async def prune(self, request: Request) -> Response:
        body: PruneBody = body_of(request, PruneBody)
        await self._daemon.uses.flush()
        return JSONResponse(
            await self._desk.prune(older_than=body.older_than, dry_run=body.dry_run)
        )

    async def release(self, request: Request) -> Response:
        store = self._daemon.store
        digest = await asyncio.to_thread(store.find_hash, request.path_params["prefix"])
        failed = await asyncio.to_thread(store.release_failed, digest)
        released = self._daemon.sandbox.release(digest) or failed > 0
        return JSONResponse({"hash": digest, "released": released})

    # Inside.

    async def _shown(self, request: Request) -> dict[str, Any]:
        await self._daemon.uses.flush()
        return await asyncio.to_thread(
            protocol_views.protocol,
            self._daemon.store,
            self._daemon.sandbox,
            request.path_params["prefix"],
            self._daemon.exposure,
        )

    async def _peer(self, text: str | None) -> str | None:
        if text is None:
            return None
        return await asyncio.to_thread(
            canonical_peer, self._daemon.config, self._daemon.store, text
        )
