"""One open channel: its key, what it has carried, and what may come next. Pure."""

from __future__ import annotations

from collections.abc import Callable

from anp.channel.core.events import ChannelOpened, ChannelRole
from anp.channel.core.limits import LinkConfig
from anp.channel.core.optional import UnagreedFrames
from anp.errors import ErrorCode, LocalError, PeerError
from anp.wire.counters import (
    EXTENSION_COUNTER,
    SALT_SIZE,
    ReplayWindow,
    SendCounter,
    block_end,
    counter_of,
)
from anp.wire.envelope import (
    check_envelope_dids,
    check_envelope_version,
    open_envelope,
    seal,
)
from anp.wire.frames import Frame, decode_frame, encode_frame
from anp.wire.keys import SessionKeys
from anp.wire.messages import IV_SIZE, Envelope
from anp.wire.moment import Moment
from anp.wire.replay import IvMemory

__all__ = ["OpenChannel"]

MAX_PLAIN_SENT = 2**20
"Messages sent under a key with random ivs; the receiver ends it far earlier."

MAX_UNPROVED = 1024
"Ids of messages kept until the peer proved that it still has the key."


class OpenChannel:
    """What a link knows of one channel.

    Args:
        counter: Where the counters for sending go on, with the extension `counter`.
        window: What was received so far, with the same.
        seen_ivs: What was received so far, without it.
        proved: The peer has shown on this link that it holds the key.
        now: When the channel was opened or taken up.
    """

    def __init__(
        self,
        opened: ChannelOpened,
        keys: SessionKeys,
        config: LinkConfig,
        *,
        counter: SendCounter | None,
        window: ReplayWindow | None,
        seen_ivs: IvMemory | None,
        proved: bool,
        random_bytes: Callable[[int], bytes],
        now: float,
    ) -> None:
        self.opened = opened
        self.keys = keys
        self.unagreed = UnagreedFrames(config.max_unagreed_frames)
        self.proved = proved
        self.hinted = False
        self.sent_ids: set[str] = set()
        self.held: list[Envelope] = []
        self.kept = False
        self.claimed = -1
        self.first_counter = counter.next if counter else 0
        self._config = config
        self._counter = counter
        self._window = window
        self._seen_ivs = seen_ivs
        self._random_bytes = random_bytes
        self._sent = 0
        self.renew_at: float | None = None
        if opened.role is ChannelRole.REQUESTER:
            began = now if opened.began is None else opened.began
            self.renew_at = config.renewal.due_at(began, opened.expires_at)

    @classmethod
    def fresh(
        cls,
        opened: ChannelOpened,
        keys: SessionKeys,
        config: LinkConfig,
        *,
        sent_iv: bytes,
        finished_iv: bytes,
        random_bytes: Callable[[int], bytes],
        now: float,
    ) -> OpenChannel:
        """Return the channel of a handshake that has just succeeded.

        Args:
            sent_iv: Iv of our `finished`; it counts as used.
            finished_iv: Iv of the peer's, which must not come back.
        """
        counted = EXTENSION_COUNTER in opened.extensions
        return cls(
            opened,
            keys,
            config,
            counter=SendCounter(sent_iv[:SALT_SIZE], first=1) if counted else None,
            window=ReplayWindow(highest=0) if counted else None,
            seen_ivs=None if counted else IvMemory([finished_iv]),
            proved=True,
            random_bytes=random_bytes,
            now=now,
        )

    @classmethod
    def resumed(
        cls,
        opened: ChannelOpened,
        keys: SessionKeys,
        config: LinkConfig,
        *,
        first: int,
        end: int,
        mark: int,
        claimed: int,
        random_bytes: Callable[[int], bytes],
        now: float,
    ) -> OpenChannel:
        """Return a channel whose key was kept.

        Args:
            first: First counter that is reserved for us.
            end: The one behind the last of them.
            mark: Highest counter that somebody may have accepted before.
            claimed: Highest counter that we may accept without a new claim.
        """
        channel = cls(
            opened,
            keys,
            config,
            counter=SendCounter(random_bytes(SALT_SIZE), first=first, end=end),
            window=ReplayWindow(highest=mark),
            seen_ivs=None,
            proved=opened.role is ChannelRole.PROVIDER,
            random_bytes=random_bytes,
            now=now,
        )
        channel.kept, channel.claimed = True, claimed
        return channel

    @property
    def counted(self) -> bool:
        """Whether the channel has the extension `counter`."""
        return self._counter is not None

    @property
    def max_payload(self) -> int:
        """Bytes of protocol data that one frame may have (WIRE row 34)."""
        agreed = self.opened.max_message
        if agreed is None:
            return self._config.max_payload
        return agreed - self.opened.frame_format.header_size

    @property
    def needs_block(self) -> bool:
        """Whether counters have to be reserved before anything is sent."""
        return self._counter is not None and self._counter.needs_block

    @property
    def renewal_due(self) -> bool:
        """Whether the key carried so much that its requester has to renew it."""
        if self.opened.role is not ChannelRole.REQUESTER:
            return False
        if self._counter is not None and self._window is not None:
            most = max(self._counter.next, self._window.highest)
        else:
            most = max(self._sent, len(self._seen_ivs or ()))
        return self._config.renewal.used_up(most, counted=self.counted)

    def keep(self) -> tuple[int, int]:
        """Go on with reserved counters and claimed blocks only, as a kept key has to.

        Returns:
            What to store: the first counter that is not reserved, and the highest one
            received that is claimed.
        """
        if self._counter is None or self._window is None:
            raise LocalError("a key without the extension `counter` is never kept")
        self.kept = True
        self.claimed = block_end(self._window.highest)
        return self._counter.hold_to_block(), self.claimed

    def unkeep(self) -> None:
        """Go on freely: the key is in no store."""
        assert self._counter is not None
        self.kept = False
        self._counter.free()

    def reserve(self, first: int, end: int) -> None:
        """Take the counters from `first` to before `end`, which are reserved for us."""
        assert self._counter is not None
        self._counter.reserve(first, end)

    def seal(self, frame: Frame, *, message_id: str, now: Moment) -> str:
        """Return one frame as a `message`."""
        opened = self.opened
        if self._counter is not None:
            iv = self._counter.take()
        elif self._sent >= MAX_PLAIN_SENT:
            raise LocalError("the key is used up")
        else:
            iv = self._random_bytes(IV_SIZE)
        self._sent += 1
        if not self.proved and len(self.sent_ids) < MAX_UNPROVED:
            self.sent_ids.add(message_id)
        return seal(
            self.keys,
            encode_frame(frame, opened.frame_format),
            source_did=opened.local_did,
            destination_did=opened.peer_did,
            message_id=message_id,
            iv=iv,
            timestamp=now.utc,
            version=opened.frame_format.version,
        )

    def open(self, envelope: Envelope) -> Frame | None:
        """Return the frame in an envelope, and remember that it came.

        Returns:
            None: it is good, but its counter has to be claimed first; see `claimed`.

        Raises:
            PeerError: It is not a new message under this key; `ENCRYPTION_KEY_EXPIRED`
                when the key is used up.
        """
        opened = self.opened
        check_envelope_dids(
            envelope, source_did=opened.peer_did, destination_did=opened.local_did
        )
        check_envelope_version(envelope, opened.frame_format.version)
        plaintext = open_envelope(self.keys, envelope)
        # Only what decrypts is remembered, or anybody could fill the memory.
        if self._window is not None:
            counter = counter_of(envelope.iv)
            self._window.check(counter)
            if self.kept and counter > self.claimed:
                return None
            self._window.add(counter)
        elif self._seen_ivs is not None:
            self._seen_ivs.check(envelope.iv)
        agreed = opened.max_message
        if agreed is not None and len(plaintext) > agreed:
            raise PeerError(
                ErrorCode.NOT_ALLOWED,
                f"a frame of {len(plaintext)} bytes, agreed were {agreed}",
            )
        return decode_frame(plaintext, opened.frame_format)
