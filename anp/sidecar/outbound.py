"""Calls out: our agent uses peers."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx

from anp.channel.channel import Channel, ChannelClosed
from anp.channel.links import Links, Target
from anp.errors import CallError, ErrorKind, PeerError
from anp.identity.address import parse_peer
from anp.identity.book import AddressBook
from anp.identity.well_known import MAX_WELL_KNOWN, parse_well_known, well_known_url
from anp.sidecar.agreeing import Agreer
from anp.sidecar.halves import load_half
from anp.sidecar.protocol import Answer, DoesNotFit, Protocol
from anp.sidecar.sessions import Session, Sessions
from anp.wire.messages import MetaProtocol
from cache.records import AgreementRecord, HalfRecord, Role
from cache.store import Store
from negotiation.acceptance import Validator
from negotiation.document import read_document
from negotiation.errors import DocumentError, HalfError, NegotiationError
from negotiation.mind import Need
from negotiation.task import Task, task_key
from sandbox.pool import Sandbox

__all__ = ["CallRequest", "CallResult", "Caller"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRequest:
    """What the local agent asks for."""

    peer: str
    "Name, DID, URL or `URL#DID`."

    task: Task
    "What it wants."

    arguments: Any
    "The data, a JSON object."

    timeout: float | None = None
    "Seconds for everything together, or None for the configured limits."

    trust_first_use: bool = False
    "The owner allows a first use over an unencrypted connection."


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """What came of a call."""

    output: Any
    "The result."

    protocol: str
    "Hash of the document it went through."

    source: str
    "`negotiated` or `agreement`."

    negotiation_messages: int
    "Meta messages of this call, both directions."

    rounds: int
    "Candidates that were on the table."

    llm_calls: int
    "Model calls of this call, on our side."

    ms: float
    "Milliseconds for everything."

    peer_did: str
    "DID the peer proved."

    negotiation_id: str | None
    "The negotiation the protocol came from."

    timeline: list[dict[str, Any]]
    "What happened when: entries with `what` and `ms`."


@dataclass(slots=True)
class _Ready:
    """A session with one request encoded for it."""

    session: Session
    message_id: str
    data: bytes
    source: str
    messages: int = 0
    rounds: int = 0


class Caller:
    """Finds or makes an agreement with a peer, and calls through it."""

    def __init__(
        self,
        *,
        links: Links,
        book: AddressBook,
        store: Store,
        agreer: Agreer,
        sandbox: Sandbox,
        validator: Validator,
        own_did: str,
        offer: Callable[[str | None], MetaProtocol],
        is_blocked: Callable[[str], bool],
        remember: Callable[[Channel], Awaitable[None]],
        call_timeout: float,
        negotiation_timeout: float,
        half_deadline: float,
        model_calls: Callable[[], int],
    ) -> None:
        self._links = links
        self._book = book
        self._store = store
        self._agreer = agreer
        self._sandbox = sandbox
        self._validator = validator
        self._own_did = own_did
        self._offer = offer
        self._is_blocked = is_blocked
        self._remember = remember
        self._negotiation_timeout = negotiation_timeout
        self._half_deadline = half_deadline
        self._model_calls = model_calls
        self._sessions = Sessions(call_timeout=call_timeout)
        self._locks: dict[tuple[str, str], asyncio.Lock] = {}

    async def call(self, request: CallRequest) -> CallResult:
        """Carry one call to a peer and back.

        Raises:
            CallError: With the kind that programs read.
        """
        started = time.monotonic()
        timeline: list[dict[str, Any]] = []

        def mark(what: str) -> None:
            ms = round((time.monotonic() - started) * 1000, 1)
            timeline.append({"what": what, "ms": ms})

        if not isinstance(request.arguments, dict):
            raise CallError(ErrorKind.USAGE, "the input has to be a JSON object")
        models_before = self._model_calls()
        try:
            async with asyncio.timeout(request.timeout):
                await self._check_task(request.task, request.arguments)
                target = await self._find(request)
                async with asyncio.timeout(self._negotiation_timeout):
                    ready = await self._ready(target, request, mark)
                answer = await self._exchange(ready, target, request, mark)
        except TimeoutError:
            raise CallError(
                ErrorKind.TIMEOUT,
                "no result in time; --timeout gives more, the peer may still be at it",
                may_have_run=True,
            ) from None
        if answer.error is not None:
            code, message = answer.error
            raise CallError(
                ErrorKind.APPLICATION_ERROR, f"the peer answered {code}: {message}"
            )
        await self._check_result(request.task, answer.result)
        agreement = ready.session.agreement
        await asyncio.to_thread(self._store.mark_used, agreement, at=time.time())
        mark("result")
        return CallResult(
            output=answer.result,
            protocol=agreement.hash,
            source=ready.source,
            negotiation_messages=ready.messages,
            rounds=ready.rounds,
            llm_calls=self._model_calls() - models_before,
            ms=round((time.monotonic() - started) * 1000, 1),
            peer_did=ready.session.channel.peer_did,
            negotiation_id=agreement.negotiation_id,
            timeline=timeline,
        )

    # Who and where.

    async def _find(self, request: CallRequest) -> Target:
        address = parse_peer(request.peer)
        destination = await asyncio.to_thread(self._book.lookup, address)
        did = destination.did
        if did is None:
            did = await _ask_who(destination.url)
        first = await asyncio.to_thread(
            self._book.confirm,
            destination.url,
            did,
            named=destination.named,
            trust_first_use=request.trust_first_use,
        )
        if first:
            logger.info("peer pinned at first use url=%s did=%s", destination.url, did)
        if await asyncio.to_thread(self._is_blocked, did):
            raise CallError(
                ErrorKind.POLICY, f"{did} is blocked; `anpd peers allow {did}` lifts it"
            )
        return Target(did, destination.url)

    # Agreements.

    async def _ready(
        self, target: Target, request: CallRequest, mark: Callable[[str], None]
    ) -> _Ready:
        """Return a session whose protocol takes the data, negotiating if needed."""
        key = task_key(request.task)
        lock = self._locks.setdefault((target.did, key), asyncio.Lock())
        async with lock:
            found = await self._agreed(target, key, request, mark)
            if isinstance(found, _Ready):
                return found
            channel = found
            if channel is None:
                channel = await self._open(target, None)
                mark("channel open, peer verified")
            agreed = await self._agreer.agree(
                channel, Need(request.task, request.arguments)
            )
            await self._remember(channel)
            mark("protocol agreed, code checked")
            session = await self._bind(channel, agreed.agreement, agreed.half)
            ready = await self._encoded(session, request.arguments, "negotiated")
            ready.messages, ready.rounds = agreed.messages, agreed.rounds
            return ready

    async def _agreed(
        self,
        target: Target,
        key: str,
        request: CallRequest,
        mark: Callable[[str], None],
    ) -> _Ready | Channel | None:
        """Try the agreements for a task, the newest first.

        Returns:
            A ready session; or the channel on which the peer declined the newest
            agreement that fits, to negotiate on; or None when none fits.
        """
        for agreement in await asyncio.to_thread(self._agreements, target.did, key):
            known = self._sessions.live(agreement)
            try:
                protocol = known.protocol if known else await self._load(agreement)
                if protocol is None:
                    continue
                message_id, data = await self._request(protocol, request.arguments)
            except (DoesNotFit, HalfError, DocumentError) as exc:
                if isinstance(exc, HalfError) and exc.outcome == "quarantined":
                    # A new negotiation would come to the same code.
                    raise CallError(ErrorKind.GENERATED_CODE, str(exc)) from exc
                # Left alone: it is good for data of its own shape.
                logger.debug("agreement skipped hash=%s %s", agreement.hash[:12], exc)
                continue
            if known is not None:
                return _Ready(known, message_id, data, "agreement")
            channel = await self._open(target, agreement.hash)
            mark("channel open, peer verified")
            if channel.peer_meta.used_protocol_hash != agreement.hash:
                logger.info("agreement declined hash=%s", agreement.hash[:12])
                return channel
            session = self._sessions.start(channel, protocol, agreement)
            return _Ready(session, message_id, data, "agreement")
        return None

    def _agreements(self, peer_did: str, key: str) -> list[AgreementRecord]:
        peers = {peer_did, self._canonical.get(peer_did, peer_did)}
        return [
            agreement
            for peer in peers
            for agreement in self._store.agreements(
                self._own_did, peer, Role.REQUESTER, key
            )
        ]

    @property
    def _canonical(self) -> dict[str, str]:
        """Canonical DIDs of peers known under another form, by that form."""
        return {
            alias: peer.did for peer in self._store.peers() for alias in peer.aliases
        }

    async def _load(self, agreement: AgreementRecord) -> Protocol | None:
        half = await asyncio.to_thread(
            self._store.half, agreement.hash, Role.REQUESTER, agreement.revision
        )
        if half is None:
            return None
        return await self._protocol(agreement, half)

    async def _protocol(
        self, agreement: AgreementRecord, half: HalfRecord
    ) -> Protocol | None:
        document = await asyncio.to_thread(self._store.document, agreement.hash)
        if document is None:
            return None
        loaded = await load_half(
            self._sandbox,
            f"requester:{agreement.peer_did}:{agreement.hash}:{agreement.revision}",
            half.source,
            origin=half.origin,
            protocol=agreement.hash,
            peer=agreement.peer_did,
            deadline=self._half_deadline,
        )
        return Protocol(
            agreement.hash, read_document(document.text), loaded, self._validator
        )

    # Sessions.

    async def _open(self, target: Target, digest: str | None) -> Channel:
        await self._sessions.make_room(target.did)
        return await self._links.open_channel(target, self._offer(digest))

    async def _bind(
        self, channel: Channel, agreement: AgreementRecord, half: HalfRecord
    ) -> Session:
        try:
            protocol = await self._protocol(agreement, half)
        except HalfError as exc:
            raise CallError(
                ErrorKind.GENERATED_CODE, f"our half cannot be loaded: {exc}"
            ) from exc
        if protocol is None:
            raise CallError(ErrorKind.LOCAL_RESOURCE, "the agreement was not kept")
        return self._sessions.start(channel, protocol, agreement)

    # One exchange.

    async def _request(
        self, protocol: Protocol, arguments: dict[str, Any]
    ) -> tuple[str, bytes]:
        message_id = secrets.token_hex(8)
        return message_id, await protocol.encode(message_id, arguments)

    async def _encoded(
        self, session: Session, arguments: dict[str, Any], source: str
    ) -> _Ready:
        try:
            message_id, data = await self._request(session.protocol, arguments)
        except NegotiationError as exc:
            raise CallError(
                ErrorKind.GENERATED_CODE, f"our half cannot encode the input: {exc}"
            ) from exc
        return _Ready(session, message_id, data, source)

    async def _exchange(
        self,
        ready: _Ready,
        target: Target,
        request: CallRequest,
        mark: Callable[[str], None],
    ) -> Answer:
        for last in (False, True):
            try:
                return await self._sessions.exchange(
                    ready.session, ready.message_id, ready.data
                )
            except ChannelClosed:
                # Its first byte was not sent, so it may be tried once more.
                if last:
                    raise
                again = await self._ready(target, request, mark)
                ready.session, ready.source = again.session, again.source
                ready.message_id, ready.data = again.message_id, again.data
                ready.messages += again.messages
                ready.rounds += again.rounds
        raise AssertionError("unreachable")

    # Checks against the caller's own schemas.

    async def _check_task(self, task: Task, arguments: dict[str, Any]) -> None:
        for name, schema in (
            ("input", task.input_schema),
            ("output", task.output_schema),
        ):
            if schema is not None:
                findings = await self._validator.check_schema(schema)
                if findings:
                    raise CallError(
                        ErrorKind.USAGE,
                        f"the task's {name} schema: {'; '.join(findings)}",
                    )
        if task.input_schema is not None:
            findings = await self._validator.validate(task.input_schema, arguments)
            if findings:
                raise CallError(
                    ErrorKind.USAGE,
                    f"the input does not fit the task's schema: {'; '.join(findings)}",
                )

    async def _check_result(self, task: Task, result: Any) -> None:
        if task.output_schema is None:
            return
        findings = await self._validator.validate(task.output_schema, result)
        if findings:
            raise CallError(
                ErrorKind.GENERATED_CODE,
                f"the result does not fit the task's schema: {'; '.join(findings)}",
                may_have_run=True,
            )


async def _ask_who(url: str) -> str:
    """Return the DID that a daemon names at its address; nothing is proved yet."""
    where = well_known_url(url)
    try:
        async with (
            httpx.AsyncClient(timeout=5.0, trust_env=False) as client,
            client.stream("GET", where) as response,
        ):
            if response.status_code != 200:
                raise CallError(
                    ErrorKind.PEER_UNREACHABLE,
                    f"{where} answers {response.status_code}; is it an anpd?",
                )
            data = b""
            async for chunk in response.aiter_bytes():
                data += chunk
                if len(data) > MAX_WELL_KNOWN:
                    break
            return parse_well_known(data).did
    except httpx.HTTPError as exc:
        raise CallError(
            ErrorKind.PEER_UNREACHABLE,
            f"cannot reach {url}: {exc or type(exc).__name__}; is its anpd up?",
        ) from exc
    except PeerError as exc:
        raise CallError(ErrorKind.PEER_UNREACHABLE, exc.detail) from exc
