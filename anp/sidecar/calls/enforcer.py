"""Ends open channels that the owner's word allows no longer.

A peer is let in once, with its hello, and a channel is bound once. The owner may
change what was decided then: block a peer, revoke a protocol, hide a capability, or
change the policy. So every open channel is judged again after each such change, in
either direction and whatever it speaks, and what runs on it ends with it.

Whoever opens a channel enters it before it looks at the rules, and a change is stored
before the channels are looked at. So one of both sees the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Protocol

from anp.channel.channel import Channel
from anp.channel.core.events import ChannelRole
from anp.channel.links import Links
from anp.errors import ErrorCode
from anp.identity.dids import canonical_did
from anp.sidecar.agreement.refusals import revoked_in_words
from anp.sidecar.offer.exposure import Exposure
from anp.sidecar.peers.policy import PeerPolicy
from cache.errors import CacheError
from cache.records.peers import PeerState
from cache.records.records import AgreementRole
from cache.store import Store

logger = logging.getLogger(__name__)

LOOK: Final = 0.3
"Seconds between two looks at a shared store for decisions by other daemons."

RULINGS: Final = ("ruling", "revocation", "withdrawn")
"Kinds of records that change with a decision of the owner's, and else never."


class End(Protocol):
    """Ends a channel of ours and the calls on it; see `BoundRequester.revoke`."""

    async def __call__(self, reason: str, *, told: str, code: ErrorCode) -> None: ...


Retire = Callable[[str], Coroutine[Any, Any, None]]


@dataclass(slots=True, kw_only=True)
class _Use:
    """One open channel, and what it is used for."""

    channel: Channel

    peer: str
    "The peer's DID in its canonical form."

    hash: str | None = None
    "The document that the channel is bound to, if it is one that can be revoked."

    capabilities: Mapping[str, str] = field(default_factory=dict)
    "Our capabilities that its half was made for, each with the hash of its schemas."

    meanings: Mapping[str, str] = field(default_factory=dict)
    "Hashes of their descriptions when the channel was bound, by name."

    task: asyncio.Task[Any] | None = None
    "Serves the channel, with all calls of the peer's on it."

    end: End | None = None
    "Ends the channel, with a reason for the calls of ours on it."

    retire: Retire | None = None
    "Closes the channel, with a reason for the peer, after the peer's calls on it."

    retiring: bool = False
    "True when it closes after these calls already."


@dataclass(frozen=True, slots=True)
class _Problem:
    """The reason for which a channel may not go on."""

    reason: str
    "For the log and for our own callers."

    told: str
    "For the peer, which does not learn more than it has to."

    code: ErrorCode = ErrorCode.ENCRYPTION_KEY_EXPIRED

    blocked: bool = False
    "The peer may not even keep its connection."

    lets_calls_end: bool = False
    "Nobody forbade anything: what the channel is for is gone or has changed."


class Enforcer:
    """Knows every open channel, and ends those that may not go on."""

    def __init__(
        self, *, links: Links, policy: PeerPolicy, exposure: Exposure, store: Store
    ) -> None:
        self._links = links
        self._policy = policy
        self._exposure = exposure
        self._store = store
        self._uses: dict[Channel, _Use] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ruled_out: set[tuple[str, str | None]] = set()
        self._watch: asyncio.Task[None] | None = None
        self.on_recheck: Callable[[], None] = lambda: None
        "Told that the owner has said something, before the channels are judged."
        self.also: Callable[[], Awaitable[None]] | None = None
        "Ends what the rules forbid beside channels."

        links.on_opened = self._opened
        exposure.watch(self._hidden)

    # Channels come and go.

    @contextlib.contextmanager
    def served(self, channel: Channel, peer: str) -> Iterator[None]:
        """Enter a channel of a peer's for as long as the present task serves it."""
        use = _Use(channel=channel, peer=peer, task=asyncio.current_task())
        self._uses[channel] = use
        try:
            yield
        finally:
            self._uses.pop(channel, None)
            # The task keeps the error that ended it, and with it all that it passed.
            use.task = None

    async def admits(
        self,
        channel: Channel,
        *,
        hash: str | None = None,
        capabilities: Mapping[str, str] | None = None,
        retire: Retire | None = None,
    ) -> bool:
        """Say if a channel may be served, now that it is known what it is used for.

        Otherwise the channel has ended.

        Args:
            retire: Closes the channel after its calls, with a reason for the peer.
        """
        use = self._uses[channel]
        use.hash, use.capabilities = hash, capabilities or {}
        use.meanings = self._exposure.meanings(use.capabilities, use.peer)
        # The task that asks ends by itself.
        task, use.task = use.task, None
        try:
            return not await self._judge([use])
        except CacheError as exc:
            # It was let in a moment ago, and that still holds.
            logger.warning("channel not judged again reason=%s", exc)
            return True
        finally:
            use.task, use.retire = task, retire
            del task

    def calls(self, channel: Channel, *, hash: str, peer: str, end: End) -> None:
        """Enter a channel on which we call, with the document that it is bound to.

        Args:
            peer: The peer that the agreement is with.
            end: Ends the channel, with a reason for the calls of ours on it.
        """
        self._uses[channel] = use = _Use(channel=channel, peer=peer, hash=hash, end=end)
        self._later(self._judge([use]))

    def left(self, channel: Channel) -> None:
        """Forget a channel on which we called; it has ended."""
        self._uses.pop(channel, None)

    # The owner's word changes.

    async def recheck(self) -> int:
        """Judge every open channel by the rules as they are now.

        Returns:
            The number of channels that ended.
        """
        self.on_recheck()
        # Calls may go on after the link of their channel was lost.
        channels = {*self._links.channels, *self._uses}
        uses = [self._use_of(channel) for channel in channels]
        ended = await self._judge(uses)
        blocked = await asyncio.to_thread(self._blocked, self._links.peers)
        await self._links.cut_off(blocked, "not allowed")
        if self.also is not None:
            await self.also()
        return ended

    async def rule_out(self, digest: str, peer_did: str | None) -> int:
        """End the channels on a document whose revocation the store does not take.

        It counts until `allow`, or until the daemon ends.

        Args:
            peer_did: Only those of this peer, in its canonical form.

        Returns:
            The number of channels that ended.
        """
        self._ruled_out.add((digest, peer_did))
        ended = [use for use in self._uses.values() if self._is_ruled_out(use)]
        problem = _Problem(revoked_in_words(digest), "revoked")
        await asyncio.gather(*(self._end(use, problem) for use in ended))
        return len(ended)

    async def shut_out(self) -> int:
        """End all that peers have here whose block the store does not take.

        Returns:
            The number of channels that ended.
        """
        held = self._policy.is_held
        channels = {*self._links.channels, *self._uses}
        uses = [
            use
            for use in map(self._use_of, channels)
            if held(use.peer, use.channel.peer_did)
        ]
        code = ErrorCode.NOT_ALLOWED
        problem = _Problem("it is blocked", "not allowed", code, blocked=True)
        await asyncio.gather(*(self._end(use, problem) for use in uses))
        gone = {shown for shown, did in self._links.peers.items() if held(did, shown)}
        await self._links.cut_off(gone, "not allowed")
        return len(uses)

    def allow(self, digest: str) -> None:
        """Forget what `rule_out` was told of a document."""
        self._ruled_out = {one for one in self._ruled_out if one[0] != digest}

    def _is_ruled_out(self, use: _Use) -> bool:
        return not self._ruled_out.isdisjoint({(use.hash, None), (use.hash, use.peer)})

    def start(self) -> None:
        """Begin to notice what the owner decides through other daemons, if any."""
        if self._store.is_shared:
            self._watch = asyncio.create_task(self._watch_store())

    async def close(self) -> None:
        """End that, and wait for what was to be done later."""
        if self._watch is not None:
            self._watch.cancel()
        await asyncio.gather(*self._tasks)

    async def _watch_store(self) -> None:
        seen: tuple[int, ...] | None = None
        while True:
            try:
                found = await asyncio.to_thread(self._changes)
                if found != seen:
                    await self.recheck()
                    seen = found
            except CacheError:
                # The store says so itself; all goes on as it was last known.
                logger.debug("decisions of other daemons cannot be read")
            except Exception:
                # Without this nothing that another daemon decides would count here.
                logger.exception("decisions of other daemons were not carried out")
            await asyncio.sleep(LOOK)

    def _opened(self, channel: Channel) -> None:
        """Judge a channel of ours; what a peer opened is judged before it is served."""
        if channel.opened.role is ChannelRole.REQUESTER:
            self._later(self._judge([self._use_of(channel)]))

    def _hidden(self) -> None:
        """End the channels whose capabilities are hidden, gone or have changed."""
        for use in list(self._uses.values()):
            problem = self._unfit(use)
            if problem is not None:
                self._later(self._end(use, problem))

    def _changes(self) -> tuple[int, ...]:
        return tuple(self._store.changes(area) for area in RULINGS)

    # Judging.

    async def _judge(self, uses: Iterable[_Use]) -> int:
        """End those that may not go on, and return how many these were."""
        used = list(uses)
        stored = await asyncio.to_thread(self._look_up, used)
        found = [
            (use, problem)
            for use, ruled in zip(used, stored, strict=True)
            if (problem := ruled or self._unfit(use)) is not None
            and (use.channel.open or use.task is not None)
        ]
        await asyncio.gather(*(self._end(use, problem) for use, problem in found))
        return len(found)

    def _look_up(self, uses: Iterable[_Use]) -> list[_Problem | None]:
        """Return for each why the owner's decisions end it, or None.

        Many channels share a peer or a document, so each is looked up once.
        """
        state, is_revoked = cache(self._policy.state), cache(self._store.is_revoked)

        def problem(use: _Use) -> _Problem | None:
            if use.hash and self._is_ruled_out(use):
                return _Problem(revoked_in_words(use.hash), "revoked")
            found = self._unwanted(use, state(use.peer, use.channel.peer_did))
            if found is None and use.hash and is_revoked(use.hash, use.peer):
                return _Problem(revoked_in_words(use.hash), "revoked")
            if found is None and use.capabilities:
                names = list(use.capabilities)
                role = AgreementRole.PROVIDER
                if withdrawn := self._store.withdrawn(role, use.peer, names):
                    reason = f"you withdrew {', '.join(withdrawn)}"
                    return _Problem(reason, "revoked")
            return found

        return [problem(use) for use in uses]

    def _unwanted(self, use: _Use, state: PeerState) -> _Problem | None:
        blocked = state is PeerState.BLOCKED
        if use.channel.opened.role is ChannelRole.REQUESTER and not blocked:
            # The policy is on those who call us, not on those whom we call.
            return None
        problem = self._policy.problem(state, use.channel.peer_did)
        if problem is None:
            return None
        reason = f"{problem}; `anpd peers allow {use.channel.peer_did}` lifts it"
        return _Problem(reason, "not allowed", ErrorCode.NOT_ALLOWED, blocked)

    def _unfit(self, use: _Use) -> _Problem | None:
        problem = self._exposure.misfit(use.capabilities, use.peer)
        problem = problem or self._exposure.reworded(use.meanings, use.peer)
        if problem is None:
            return None
        hidden = any(self._exposure.hides(one, use.peer) for one in use.capabilities)
        return _Problem(problem, f"stale: {problem}", lets_calls_end=not hidden)

    def _blocked(self, peers: Mapping[str, str]) -> set[str]:
        return {
            shown
            for shown, canonical in peers.items()
            if self._policy.state(canonical, shown) is PeerState.BLOCKED
        }

    async def _end(self, use: _Use, problem: _Problem) -> None:
        """End a channel at once, with all that runs on it, unless its calls may end."""
        if problem.lets_calls_end and use.retire is not None:
            if not use.retiring:
                use.retiring = True
                self._later(use.retire(problem.told))
            return
        logger.info(
            "channel ended by the owner's word peer=%s reason=%s",
            use.channel.peer_did,
            problem.reason,
        )
        if use.task is not None:
            use.task.cancel()
        if use.end is not None:
            await use.end(problem.reason, told=problem.told, code=problem.code)
        await use.channel.cut(problem.told, code=problem.code)
        if problem.blocked:
            await self._links.cut_off({use.channel.peer_did}, problem.told)

    def _use_of(self, channel: Channel) -> _Use:
        known = self._uses.get(channel)
        if known is not None:
            return known
        peer = canonical_did(channel.peer_did, channel.peer_key)
        return _Use(channel=channel, peer=peer)

    def _later(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.create_task(_logged(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _logged(work: Coroutine[Any, Any, object]) -> None:
    try:
        await work
    except CacheError as exc:
        logger.warning("channel not judged again reason=%s", exc)
    except Exception:
        logger.exception("the owner's word was not carried out on a channel")
