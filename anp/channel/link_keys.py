"""The shell of the keys on one link that rest on disk as well."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from time import monotonic

from anp.channel.channel import Channel, ChannelAcceptor, nothing, read_clocks
from anp.channel.core.events import ChannelEnded, NeedClaim, NeedHelloAnswer, NeedKey
from anp.channel.core.limits import LinkConfig
from anp.channel.core.link_core import LinkCore
from anp.channel.core.traffic import OpenChannel
from anp.channel.keeper import KeyKeeper, Taken
from anp.errors import ErrorCode, PeerError
from anp.identity.dids import Identities
from anp.identity.resolver import Resolver

logger = logging.getLogger(__name__)


class LinkKeys:
    """Keeps the keys of a link's channels, and takes kept ones up on it.

    Args:
        channels: The open channels of the link, by id.
        pump: Carries out what the core says.
        allow_long: Lets the connection read long messages from now on.
    """

    def __init__(
        self,
        core: LinkCore,
        keeper: KeyKeeper | None,
        *,
        name: str,
        config: LinkConfig,
        identities: Identities,
        resolver: Resolver,
        acceptor: ChannelAcceptor,
        channels: Mapping[str, Channel],
        pump: Callable[[], None],
        allow_long: Callable[[], None],
    ) -> None:
        self._core = core
        self._keeper = keeper
        self.name = name
        self._config = config
        self._identities = identities
        self._resolver = resolver
        self._acceptor = acceptor
        self._channels = channels
        self._pump = pump
        self._allow_long = allow_long
        self._sending = asyncio.Lock()
        self._leaves: dict[str, Callable[[], None]] = {}

    async def keep(self, channel: Channel, binding: str) -> None:
        """See `Channel.keep`."""
        keeper = self._keeper
        if keeper is None or not keeper.enabled:
            return
        found = self._core.keys.keep_key(channel.id)
        if found is None:
            return
        keys, reserved, mark = found
        leave = self._leave(channel.id)
        if not await keeper.keep(
            channel.opened,
            keys,
            binding,
            reserved=reserved,
            mark=mark,
            lifetime=channel.opened.expires_at - monotonic(),
            leave=leave,
        ):
            keeper.left(channel.opened, leave)
            self._leaves.pop(channel.id, None)
            self._core.keys.unkeep_key(channel.id)
            return
        channel.kept = True

    async def resume(self, taken: Taken) -> Channel:
        """Go on under a key of ours that was kept; nothing is sent for it.

        Raises:
            PeerError: It cannot be taken up.
        """
        keeper = self._keeper
        assert keeper is not None
        opened = taken.kept.reopened(now=monotonic(), wall=keeper.wall())
        leave = self._leave(opened.channel_id)
        keeper.take(taken, leave)
        try:
            await self._resolver.check_key(
                opened.peer_did, opened.key_id, opened.public_key
            )
            first, end = await keeper.reserve(opened)
            core_channel = OpenChannel.resumed(
                opened,
                taken.kept.keys,
                self._config,
                first=first,
                end=end,
                mark=taken.record.mark,
                claimed=taken.record.mark,
                random_bytes=os.urandom,
                now=monotonic(),
            )
            if not self._core.resume(core_channel, now=read_clocks()):
                raise PeerError(ErrorCode.NOT_ALLOWED, "the connection was lost")
        except BaseException:
            keeper.left(opened, leave)
            self._leaves.pop(opened.channel_id, None)
            raise
        self._pump()
        channel = self._channels.get(opened.channel_id)
        if channel is None:
            # What the peer had sent under the key ended it.
            raise PeerError(ErrorCode.NOT_ALLOWED, "the channel ended at once")
        return channel

    def let_go(self) -> None:
        """Do nothing more for the link, which has ended."""
        self._pump = self._allow_long = nothing

    async def reserve(self, channel_id: str) -> None:
        """Reserve counters for a channel; it is left when that is not possible."""
        async with self._sending:
            channel = self._channels.get(channel_id)
            if channel is None or not self._core.keys.needs_block(channel_id):
                return
            assert self._keeper is not None
            try:
                block = await self._keeper.reserve(channel.opened)
            except PeerError as exc:
                self._core.leave_channel(channel_id, exc.detail)
                self._pump()
                return
            self._core.keys.reserved(channel_id, *block)

    async def claim(self, event: NeedClaim) -> None:
        """Answer `NeedClaim`."""
        channel = self._channels.get(event.channel_id)
        last: int | None = None
        if channel is not None and self._keeper is not None:
            try:
                last = await self._keeper.claim(channel.opened, event.counter)
            except PeerError as exc:
                logger.warning(
                    "key given up connection=%s reason=%s", self.name, exc.detail
                )
        self._core.claimed(event.channel_id, last, now=read_clocks())
        self._pump()

    async def find(self, event: NeedKey) -> None:
        """Take up a key that a peer uses, if it is the one of a protocol we serve."""
        try:
            async with asyncio.timeout(self._config.handshake.timeout):
                await self._resume_peer(event)
        except PeerError as exc:
            self._refuse(event, exc)
        except TimeoutError:
            self._refuse(
                event, PeerError(ErrorCode.INVALID_DECRYPTION_KEY, "no answer in time")
            )
        except Exception:
            # The link reads nothing until this is answered, whatever went wrong.
            logger.exception(
                "a kept key could not be taken up connection=%s", self.name
            )
            self._refuse(
                event, PeerError(ErrorCode.INVALID_DECRYPTION_KEY, "an error of ours")
            )
        self._pump()

    def _refuse(self, event: NeedKey, error: PeerError) -> None:
        self._core.refuse_key(event.channel_id, error, now=read_clocks())

    def ended(self, event: ChannelEnded, channel: Channel) -> None:
        """Let go of the key of a channel that has ended, or of the channel only."""
        leave = self._leaves.pop(event.channel_id, None)
        if leave is None or self._keeper is None:
            return
        self._keeper.left(channel.opened, leave)
        if not event.kept:
            self._keeper.end_later(channel.opened, by_peer=event.by_peer)

    def _leave(self, channel_id: str) -> Callable[[], None]:
        """Return what to call when a key is taken up on another link."""

        def leave() -> None:
            self._core.leave_channel(channel_id, "its key was taken up elsewhere")
            self._pump()

        self._leaves[channel_id] = leave
        return leave

    async def _resume_peer(self, event: NeedKey) -> None:
        keeper = self._keeper
        if keeper is None:
            raise PeerError(ErrorCode.INVALID_DECRYPTION_KEY, "unknown key id")
        taken = await keeper.find(event.peer_did, event.channel_id)
        opened = taken.kept.reopened(now=monotonic(), wall=keeper.wall())
        if self._identities.for_did(opened.local_did) is None:
            raise PeerError(ErrorCode.NOT_ALLOWED, "we have another DID by now")

        def channel(claimed: int, first: int, end: int) -> OpenChannel:
            return OpenChannel.resumed(
                opened,
                taken.kept.keys,
                self._config,
                first=first,
                end=end,
                mark=taken.record.mark,
                claimed=claimed,
                random_bytes=os.urandom,
                now=monotonic(),
            )

        # In this order: whoever cannot show that it holds the key costs us one look.
        counter = self._core.keys.prove_key(channel(0, 0, 0))
        await self._resolver.check_key(
            opened.peer_did, opened.key_id, opened.public_key
        )
        asked = NeedHelloAnswer(
            "", opened.local_did, opened.peer_did, opened.public_key, opened.peer_meta
        )
        answer = await self._acceptor.answer_hello(asked)
        if taken.kept.binding not in (
            answer.used_protocol_hash,
            answer.selected_protocol,
        ):
            raise PeerError(
                ErrorCode.INVALID_DECRYPTION_KEY, "its protocol is not served any more"
            )
        claimed = await keeper.claim(opened, counter)
        block = await keeper.reserve(opened)
        keeper.take(taken, self._leave(event.channel_id))
        self._allow_long()
        self._core.resume(channel(claimed, *block), now=read_clocks())
