"""Resumption: keys of a link's channels that outlive it, or came from another link.

Pure. The parts that concern single frames are in `traffic`, and the writes to the store
are made by `anp.channel.keeper`. On disk a key rests sealed (`seal_key`, `open_key`).

Theory of operation
-------------------

Without resumption a key dies with its WebSocket. With it, a side that lost its link
opens a new one and sends the next message under the old key at once: there is no
handshake, no hello, nothing before the message itself. The peer meets a key id that the
link does not know, finds the key in its store, and goes on.

The danger is that a counter is used twice: by a sender (the cipher breaks when an iv
repeats) or by a receiver (a recorded message runs again). A crash, or two daemons that
share a store, must not lead there. Therefore counters come in aligned blocks of 1,024
(`counters.BLOCK`), and two writes are on disk *before* anything happens:

* The sender *reserves* a block before it sends with a counter of it. `may_send` answers
  `Before.BLOCK`, the shell reserves, `reserved` lets the channel go on.
* The receiver *claims* a block before it acts on a message with a counter of it. Until
  then the message is held; `NeedClaim` asks, and the shell answers the link's core.

Who takes up a key always begins a new block on either side, so nobody has to know where
the last holder stopped. Claiming is atomic, and whoever claimed a block owns it: of two
daemons that got the same recorded frame, one acts. The salt in front of the counters is
new at each resumption, so that even a store that was set back to yesterday's copy does
not repeat an iv.

The life of a kept key, in order:

1. `keep_key`: a channel was bound, and both sides listed `counter` and `resume`. The
   shell stores the sealed key with its marks; `unkeep_key` takes that back when the
   store has no room.
2. The link ends. The channel goes, the record stays.
3. The requester takes the key up: the shell reserves a block and hands the channel to
   the core. Until the peer has sent something under the key it counts as not *proved*,
   and only short messages go out (`Before.PROOF`), because the peer's connection still
   reads short ones only.
4. The provider meets the unknown key id: `look_up` keeps the message and emits
   `NeedKey`. The shell finds the record, and `prove_key` decrypts the message with it:
   a stranger who only knows the id costs one look and nothing more. Then the shell asks
   what it would ask for a hello (does the key still belong to that DID, is the protocol
   still served), claims, reserves, and the channel goes on.
5. The key ends: it expires, its counters are used up, or a side gives it up.

If the provider refuses, it sends a `response`. That message is not authenticated, so
`is_refusal` makes it a hint (`ResumptionRefused`) and nothing else. The requester then
does a handshake whose signed hellos settle, by `lostKey`, whether the message was acted
on: only if it was not is the call sent again.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, replace
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from anp.channel.core.events import (
    ChannelOpened,
    ChannelRole,
    LinkOutput,
    NeedKey,
    ResumptionRefused,
)
from anp.channel.core.limits import LinkConfig
from anp.channel.core.traffic import OpenChannel
from anp.errors import ErrorCode, LocalError, PeerError
from anp.wire.encrypted import Envelope
from anp.wire.frames import find_format
from anp.wire.keys import SessionKeys
from anp.wire.messages import Response
from anp.wire.meta_protocol import EXTENSION_RESUME, MetaProtocol
from anp.wire.replay import EXTENSION_COUNTER, MAX_COUNTER, counter_of


class KeptKeys:
    """The keys of one link that rest on disk as well.

    Args:
        channels: The open channels of the link, by id.
        output: Where it says what it wants.
    """

    def __init__(
        self, config: LinkConfig, output: LinkOutput, channels: dict[str, OpenChannel]
    ) -> None:
        self.limits = config
        "May be replaced; what is open stays."
        self._output = output
        self._channels = channels
        self.lookups: dict[str, list[Envelope]] = {}

    def keep_key(self, channel_id: str) -> tuple[SessionKeys, int, int] | None:
        """Let a channel's key outlive its link.

        Returns:
            The keys, the first counter that is not reserved, and the highest one
            received that is claimed: what to store before the channel leaves its
            present block; None if the channel cannot or need not be kept.
        """
        channel = self._channels.get(channel_id)
        if channel is None or channel.kept:
            return None
        if not channel.opened.extensions >= {EXTENSION_COUNTER, EXTENSION_RESUME}:
            return None
        return channel.keys, *channel.keep()

    def unkeep_key(self, channel_id: str) -> None:
        """Take back `keep_key`: there was no room for the key in the store."""
        channel = self._channels.get(channel_id)
        if channel is not None and channel.kept:
            channel.unkeep()

    def needs_block(self, channel_id: str) -> bool:
        """Say if counters have to be reserved before anything is sent."""
        channel = self._channels.get(channel_id)
        return channel is not None and channel.needs_block

    def reserved(self, channel_id: str, first: int, end: int) -> None:
        """Give a channel counters to send with; see `Before.BLOCK`."""
        if channel_id in self._channels:
            self._channels[channel_id].reserve(first, end)

    def prove_key(self, channel: OpenChannel) -> int:
        """Return the counter of the message that asked for a key which was kept.

        Raises:
            PeerError: The message is not one of that key, or not a new one.
        """
        envelope = self.lookups[channel.opened.channel_id][0]
        channel.claimed = MAX_COUNTER
        channel.open(envelope)
        return counter_of(envelope.iv)

    def first_counter(self, channel_id: str) -> int:
        """Return the first counter we sent on this link under a key."""
        return self._channels[channel_id].first_counter

    def look_up(self, envelope: Envelope) -> bool:
        """Ask for a key that was kept; False if nobody would know it."""
        key_id = envelope.secret_key_id
        if not self.limits.resumption:
            return False
        # A message that is malformed costs no look at the store.
        envelope.encrypted_data.decode()
        if key_id in self.lookups or len(self.lookups) >= self.limits.max_lookups:
            return False
        if len(self._channels) >= self.limits.max_channels:
            return False
        self.lookups[key_id] = [envelope]
        self._output.tell(
            NeedKey(key_id, envelope.destination_did, envelope.source_did)
        )
        return True

    def is_refusal(self, response: Response) -> bool:
        """Say if a `response` is about a message under a key we took up again."""
        for channel_id, channel in self._channels.items():
            if (
                not channel.proved
                and response.code is not ErrorCode.OK
                and response.original_message_id in channel.sent_ids
            ):
                if not channel.hinted:
                    channel.hinted = True
                    self._output.tell(ResumptionRefused(channel_id, response.code))
                return True
        return False


SECRET_SIZE = 32
"Bytes of the key that seals: AES-256."

NONCE_SIZE = 12

_HASH_SIZE = 64


@dataclass(frozen=True, slots=True)
class KeptKey:
    """A channel's key and terms, as needed to go on with it on another link."""

    opened: ChannelOpened
    "The channel as its handshake left it; its two times mean nothing any more."

    keys: SessionKeys
    "Its keys."

    binding: str
    "Hash or URI of the protocol it is bound to."

    created: float
    "When it was kept, in seconds since 1970."

    expires: float
    "When the key ends, in seconds since 1970."

    def reopened(self, *, now: float, wall: float) -> ChannelOpened:
        """Return the channel as it goes on.

        Args:
            now: Seconds on the clock of links.
            wall: Seconds since 1970, at the same moment.

        Raises:
            PeerError: `DECRYPTION_KEY_EXPIRED`, also when the wall clock was set back
                behind the moment at which the key was kept: how old it is cannot be
                told then.
        """
        if not self.created <= wall < self.expires:
            raise PeerError(ErrorCode.DECRYPTION_KEY_EXPIRED, "the key expired")
        is_requester = self.opened.role is ChannelRole.REQUESTER
        return self.opened._replace(
            session_id="",
            own_meta=bind_meta(self.opened.own_meta, self.binding, offer=is_requester),
            peer_meta=bind_meta(
                self.opened.peer_meta, self.binding, offer=not is_requester
            ),
            expires_at=now + self.expires - wall,
            began=now - (wall - self.created),
        )


def bind_meta(meta: MetaProtocol, binding: str, *, offer: bool) -> MetaProtocol:
    """Return `meta` as it would stand in hellos that offer or confirm `binding`.

    A channel that was bound by a negotiation goes on with its binding (ANP-Q20).
    """
    is_hash = len(binding) == _HASH_SIZE and ":" not in binding
    return replace(
        meta,
        used_protocol_hash=binding if is_hash else None,
        candidate_protocols=(binding,) if offer and not is_hash else (),
        selected_protocol=None if offer or is_hash else binding,
        lost_key=None,
    )


def seal_key(kept: KeptKey, secret: bytes, nonce: bytes) -> str:
    """Return a key encrypted, base64.

    Args:
        secret: 32 bytes that only this identity can derive.
        nonce: 12 random bytes.
    """
    if len(secret) != SECRET_SIZE or len(nonce) != NONCE_SIZE:
        raise LocalError("a secret or nonce of the wrong size")
    opened = kept.opened
    value = {
        "send": kept.keys.send_key.hex(),
        "receive": kept.keys.receive_key.hex(),
        "localDid": opened.local_did,
        "publicKey": opened.public_key.hex(),
        "keyId": opened.key_id,
        "ownMeta": opened.own_meta.to_json(),
        "peerMeta": opened.peer_meta.to_json(),
        "version": opened.version,
        "format": opened.frame_format.version,
    }
    sealed = AESGCM(secret).encrypt(nonce, json.dumps(value).encode(), _names(kept))
    return base64.b64encode(nonce + sealed).decode("ascii")


def open_key(
    sealed: str,
    secret: bytes,
    *,
    key_id: str,
    role: ChannelRole,
    peer_did: str,
    binding: str,
    created: float,
    expires: float,
) -> KeptKey:
    """Return the key in `sealed`, which has to be the one the other arguments name.

    Raises:
        PeerError: `INVALID_DECRYPTION_KEY`: it cannot be read. That is no fault of the
            peer's, but it is told that this key is of no use any more.
    """
    names = _join(key_id, role, peer_did, binding, created, expires)
    try:
        data = base64.b64decode(sealed, validate=True)
        content = AESGCM(secret).decrypt(data[:NONCE_SIZE], data[NONCE_SIZE:], names)
        return _read(
            json.loads(content), key_id, role, peer_did, binding, created, expires
        )
    except (InvalidTag, ValueError, KeyError, TypeError, PeerError):
        raise PeerError(
            ErrorCode.INVALID_DECRYPTION_KEY, "a kept key cannot be read"
        ) from None


def _read(
    value: dict[str, Any],
    key_id: str,
    role: ChannelRole,
    peer_did: str,
    binding: str,
    created: float,
    expires: float,
) -> KeptKey:
    opened = ChannelOpened(
        key_id,
        "",
        role,
        value["localDid"],
        peer_did,
        bytes.fromhex(value["publicKey"]),
        MetaProtocol.from_json(value["ownMeta"]),
        MetaProtocol.from_json(value["peerMeta"]),
        value["version"],
        find_format(value["format"]),
        0.0,
        value["keyId"],
    )
    keys = SessionKeys(
        key_id,
        send_key=bytes.fromhex(value["send"]),
        receive_key=bytes.fromhex(value["receive"]),
    )
    return KeptKey(opened, keys, binding, created, expires)


def _names(kept: KeptKey) -> bytes:
    opened = kept.opened
    return _join(
        opened.channel_id,
        opened.role,
        opened.peer_did,
        kept.binding,
        kept.created,
        kept.expires,
    )


def _join(*parts: object) -> bytes:
    return json.dumps(["anpd kept key 1", *map(str, parts)]).encode("ascii")
