"""The common part of both sides of a handshake.

Both sides share the deadline, the queues, the way they fail, and `finished`.
"""

from __future__ import annotations

import hmac
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from enum import Enum, auto

from anp.errors import ErrorCode, LocalError, PeerError
from anp.wire.encrypted import IV_SIZE
from anp.wire.frames import encrypt, open_sealed
from anp.wire.hellos import FINISHED, MessageForm, escaped, meta_places, write_hello
from anp.wire.keys import EphemeralKey, SessionKeys
from anp.wire.messages import (
    DestinationHello,
    Finished,
    Message,
    Response,
    SourceHello,
    format_ns,
    make_response,
)
from anp.wire.meta_protocol import MetaProtocol
from anp.wire.moment import Moment
from anp.wire.outcome import Event, HandshakeCompleted, HandshakeConfig, HandshakeFailed
from anp.wire.proof import Identity, types_of
from anp.wire.replay import EXTENSION_COUNTER, SALT_SIZE, counter_of, first_iv
from negotiation.errors import JsonError
from negotiation.strict_json import parse_json

RandomBytes = Callable[[int], bytes]
"Gives that many bytes nobody can guess."

MakeKey = Callable[[], EphemeralKey]
"Makes a key for one handshake; without it one is made of random bytes."

VERSION = "1.0"
"Version of the messages of the handshake itself, which every peer can read (ANP-78)."

CIPHER_SUITE = "TLS_AES_128_GCM_SHA256"
"The only suite we offer and choose (WIRE row 14)."

GROUP = "secp256r1"
"The only group we offer and choose (WIRE row 15)."

NOTHING = MetaProtocol()
"The `metaProtocol` of a side that has said nothing yet."

_MAX_VERIFY_DATA = 1024


class HandshakeState(Enum):
    """Where a handshake stands; `EXPECT_KEY_CHECK` and `_ANSWER` wait for our shell."""

    EXPECT_DESTINATION_HELLO = auto()
    EXPECT_KEY_CHECK = auto()
    EXPECT_ANSWER = auto()
    EXPECT_FINISHED = auto()
    DONE = auto()
    FAILED = auto()


_AWAITED = {
    HandshakeState.EXPECT_DESTINATION_HELLO: "the peer's destinationHello",
    HandshakeState.EXPECT_KEY_CHECK: "the check of the peer's key",
    HandshakeState.EXPECT_ANSWER: "our own answer",
    HandshakeState.EXPECT_FINISHED: "the peer's finished",
    HandshakeState.DONE: "nothing more",
    HandshakeState.FAILED: "nothing more",
}
"The event that a state waits for, in words for people and for the peer."

END_STATES = (HandshakeState.DONE, HandshakeState.FAILED)
"States without a way out."


class Handshake(ABC):
    """One side of one handshake; see `Initiator` and `Responder`."""

    def __init__(
        self,
        config: HandshakeConfig,
        *,
        identity: Identity,
        peer_did: str,
        session_id: str,
        state: HandshakeState,
        now: Moment,
        random_bytes: RandomBytes,
        make_key: MakeKey | None,
        meta: MetaProtocol,
    ) -> None:
        self._config = config
        self._identity = identity
        self._peer_did = peer_did
        self._session_id = session_id
        self._state = state
        self._deadline = now.monotonic + config.timeout
        self._random_bytes = random_bytes
        self._make_key = make_key
        # The newest, to stamp what is sent.
        self._now = now
        self._keys: SessionKeys | None = None
        self._own_meta = meta
        self._peer_meta = NOTHING
        # Both of the following stand once the peer's hello was checked.
        self._version = config.versions[0]
        self._format = config.formats[0]
        self._peer_expires = config.key_lifetime
        self._peer_hello: SourceHello | DestinationHello | None = None
        self._outgoing: list[str] = []
        self._events: deque[Event] = deque()
        self._sent_iv = b""

    @property
    def session_id(self) -> str:
        """The id both sides name this handshake by."""
        return self._session_id

    @property
    def local_did(self) -> str:
        """Our DID in this handshake."""
        return self._identity.did

    @property
    def peer_did(self) -> str:
        """The peer's DID as claimed; verified once the handshake is complete."""
        return self._peer_did

    @property
    def state(self) -> HandshakeState:
        """Where the handshake stands."""
        return self._state

    @property
    def secret_key_id(self) -> str | None:
        """The id of the keys as soon as they exist, else None.

        A responder knows it before the requester's `finished`, so envelopes that
        overtake that message can be held (WIRE row 29).
        """
        return self._keys.secret_key_id if self._keys else None

    def receive(self, message: Message, *, now: Moment) -> None:
        """Handle one parsed message; what is wrong with it fails the handshake."""
        if not self._goes_on(now):
            return
        try:
            self._check_address(message)
            self._handle(message, now=now)
        except PeerError as exc:
            self._fail(exc.code, exc.detail, answered=message)

    def messages_to_send(self) -> list[str]:
        """Return the messages to send now, in order, and forget them."""
        outgoing, self._outgoing = self._outgoing, []
        return outgoing

    def next_event(self) -> Event | None:
        """Return the oldest event not yet returned, or None."""
        return self._events.popleft() if self._events else None

    def get_timer(self) -> float | None:
        """Return when `handle_timer` is due, or None."""
        return None if self._state in END_STATES else self._deadline

    def handle_timer(self, *, now: Moment) -> None:
        """Fail the handshake if its deadline has passed."""
        self._goes_on(now)

    def key_checked(
        self, error: str | None, *, now: Moment, code: ErrorCode = ErrorCode.NOT_ALLOWED
    ) -> None:
        """Answer `NeedKeyCheck`.

        Args:
            error: Why the DID does not own the key, for our log; None if it does.
            code: What the peer is told with an error: `NOT_ALLOWED` or
                `DID_NOT_FOUND` (WIRE row 25).

        Raises:
            LocalError: Nobody asked.
        """
        if not self._goes_on(now):
            return
        if self._state is not HandshakeState.EXPECT_KEY_CHECK:
            raise LocalError(f"key_checked in {self._state.name}")
        if error is not None:
            self._fail(code, error, told=told_of(code))
            return
        try:
            self._key_accepted(now=now)
        except PeerError as exc:
            self._fail(exc.code, exc.detail)

    @abstractmethod
    def _handle(self, message: Message, *, now: Moment) -> None:
        """Act on one parsed message of the peer."""

    @abstractmethod
    def _key_accepted(self, *, now: Moment) -> None:
        """Go on after the peer's key was found to belong to its DID."""

    def _goes_on(self, now: Moment) -> bool:
        self._now = now
        if self._state not in END_STATES and now.monotonic >= self._deadline:
            self._fail(
                ErrorCode.ENCRYPTION_FAILED,
                f"no answer within {self._config.timeout:g} s: "
                f"{_AWAITED[self._state]} did not come",
                timed_out=True,
            )
        return self._state not in END_STATES

    def _check_address(self, message: Message) -> None:
        if isinstance(message, Finished | DestinationHello) and (
            message.session_id,
            message.source_did,
            message.destination_did,
        ) != (self._session_id, self._peer_did, self._identity.did):
            raise PeerError(
                ErrorCode.NOT_ALLOWED,
                "sessionId, sourceDid or destinationDid is not that of the handshake",
            )

    def _head(self, message_id: str, *, version: str = VERSION) -> dict[str, str]:
        # The sender is the source of each message, whoever began (WIRE row 18).
        return {
            "version": version,
            "timestamp": format_ns(self._now.unix_ns),
            "message_id": message_id,
            "session_id": escaped(self._session_id),
            "source_did": escaped(self._identity.did),
            "destination_did": escaped(self._peer_did),
        }

    def _send_hello(
        self,
        form: MessageForm,
        *,
        head: dict[str, str],
        random: str,
        key: EphemeralKey,
        meta: MetaProtocol,
        more: dict[str, str],
    ) -> None:
        signer = self._identity
        key_id, public_key_hex = escaped(signer.key_id), signer.public_key_hex
        key_type, proof_type = types_of(public_key_hex)
        places = {
            **head,
            "key_id": key_id,
            "key_type": key_type,
            "public_key_hex": public_key_hex,
            "random": random,
            "group": GROUP,
            "expires": str(self._config.key_lifetime),
            "key_exchange": key.public_hex,
            **meta_places(meta),
            "proof_type": proof_type,
            "proof_key_id": key_id,
            "created": format_ns(self._now.unix_ns, milliseconds=False),
            **more,
        }
        self._outgoing.append(write_hello(form, places, signer))

    def _send_finished(self) -> None:
        assert self._keys is not None
        content = _verify_data(self._keys.secret_key_id)
        iv = self._random_bytes(IV_SIZE)
        if self._counts:
            iv = first_iv(iv[:SALT_SIZE])
        self._sent_iv = iv
        verify_data = encrypt(self._keys.send_cipher, content, iv=iv)
        places = {**self._head(self._random_id()), **verify_data}
        self._outgoing.append(FINISHED.sent(places))

    def _complete(self, finished: Finished, now: Moment) -> None:
        """Check the peer's `finished` and end well."""
        assert self._keys is not None
        data = finished.verify_data.sealed()
        iv, content = data.nonce, open_sealed(self._keys.receive_cipher, data)
        if not _names(content, self._keys.secret_key_id):
            raise PeerError(ErrorCode.DECRYPTION_FAILED, "finished names another key")
        if self._counts and counter_of(iv) != 0:
            # As a `message` it would come back under a counter nobody has seen.
            raise PeerError(
                ErrorCode.DECRYPTION_FAILED, "finished does not begin the counter"
            )
        # The shorter lifetime wins, or one side would go on using a key the other has
        # dropped (WIRE row 16).
        lifetime = min(self._config.key_lifetime, self._peer_expires)
        self._state = HandshakeState.DONE
        self._events.append(
            HandshakeCompleted(
                self._keys,
                self._identity.did,
                self._peer_did,
                self._own_meta,
                self._peer_meta,
                self._version,
                self._format,
                now.monotonic + lifetime,
                iv,
                self._sent_iv,
            )
        )

    @property
    def _counts(self) -> bool:
        """True if both sides listed the extension `counter`."""
        return self._own_meta.shares(EXTENSION_COUNTER, self._peer_meta)

    def _unexpected(self, message: Message) -> PeerError:
        name, awaited = type(message).__name__, _AWAITED[self._state]
        return PeerError(
            ErrorCode.NOT_ALLOWED, f"{name} came where {awaited} was expected"
        )

    def end(self, error: PeerError, *, now: Moment) -> None:
        """End badly without a word: the peer's message could not be read."""
        if self._goes_on(now):
            self._fail(error.code, error.detail, silent=True)

    def _fail(
        self,
        code: ErrorCode,
        detail: str,
        *,
        answered: Message | None = None,
        told: str | None = None,
        timed_out: bool = False,
        silent: bool = False,
    ) -> None:
        """End badly, and answer the message that is at fault, else the peer's hello."""
        self._state = HandshakeState.FAILED
        self._keys = None
        self._events.append(HandshakeFailed(code, detail, timed_out))
        answered = answered or self._peer_hello
        # A response is never answered, or two sides could go on for ever; and with
        # nothing received there is nothing to answer.
        if silent or answered is None or isinstance(answered, Response):
            return
        self._outgoing.append(
            make_response(
                code,
                detail if told is None else told,
                source_did=self._identity.did,
                destination_did=self._peer_did,
                original_type=answered.kind,
                original_message_id=answered.message_id,
                message_id=self._random_id(),
                timestamp=self._now.utc,
            )
        )

    def _fresh_key(self) -> EphemeralKey:
        if self._make_key is not None:
            return self._make_key()
        return EphemeralKey.generate(self._random_bytes)

    def _random_id(self) -> str:
        return self._random_bytes(16).hex()

    def _random_text(self) -> str:
        return self._random_bytes(32).hex()


def told_of(code: ErrorCode) -> str:
    """Return what a peer is told of a refusal that came from outside the core.

    The reason itself may name what is not its business: an address, a policy.
    """
    if code is ErrorCode.DID_NOT_FOUND:
        return "the DID could not be resolved"
    if code is ErrorCode.UNAVAILABLE:
        return "cannot be answered now; try again later"
    return "not allowed"


def _verify_data(key_id: str) -> bytes:
    """Return the content of a `finished`, as we and the official SDK write it."""
    return b'{"secretKeyId": "%s"}' % key_id.encode()


def _names(content: bytes, key_id: str) -> bool:
    """Say if the content of a `finished` names a key.

    Raises:
        PeerError: `DECRYPTION_FAILED`: it cannot be read.
    """
    if hmac.compare_digest(content, _verify_data(key_id)):
        return True
    return hmac.compare_digest(_read_key_id(content).encode(), key_id.encode())


def _read_key_id(content: bytes) -> str:
    try:
        value = parse_json(content, max_size=_MAX_VERIFY_DATA)
    except JsonError as exc:
        raise PeerError(ErrorCode.DECRYPTION_FAILED, f"verifyData: {exc}") from exc
    key_id = value.get("secretKeyId") if isinstance(value, dict) else None
    if not isinstance(key_id, str):
        raise PeerError(ErrorCode.DECRYPTION_FAILED, "verifyData has no secretKeyId")
    return key_id
