"""The handshakes under way on one link, of both directions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from anp.channel.core.events import (
    ChannelOpened,
    ChannelRole,
    HandshakeRefused,
    LinkOutput,
    NeedHelloAnswer,
    NeedPeerKeyCheck,
)
from anp.channel.core.limits import LinkConfig
from anp.channel.core.traffic import OpenChannel
from anp.errors import ErrorCode, PeerError
from anp.wire.encrypted import Envelope
from anp.wire.handshake import Initiator, Responder
from anp.wire.messages import (
    DestinationHello,
    Finished,
    Response,
    SourceHello,
    UnreadableMessage,
)
from anp.wire.meta_protocol import MetaProtocol
from anp.wire.moment import Moment
from anp.wire.outcome import (
    HandshakeCompleted,
    HandshakeFailed,
    NeedHelloReply,
    NeedKeyCheck,
)
from anp.wire.proof import Identity
from anp.wire.replay import HelloMemory
from anp.wire.side import MakeKey

NOT_HERE = "does not live at this address"
"End of our words to a peer that wants an agent with another DID."

TOO_MANY_CHANNELS = "too many channels on this link"
"Our words to a peer that opens one more channel than we allow."

TOO_MANY_HANDSHAKES = "too many handshakes on this link"
"Our words to a peer that begins more handshakes at once than we allow."

NO_ROOM = frozenset({TOO_MANY_CHANNELS, TOO_MANY_HANDSHAKES})


@dataclass(slots=True)
class _Accepting:
    """A handshake the peer began, with what arrived too early for it."""

    responder: Responder
    hello: SourceHello
    held: list[Envelope] = field(default_factory=list)
    held_bytes: int = 0
    our_refusal: bool = False
    "We refuse the peer by our policy, which is no fault of its."


class Handshakes:
    """Drives every handshake of a link, and says what they want through its output.

    After each call look for `next_completed`.

    Args:
        identity_for: Our identity for a DID a peer addressed, or None.
        hellos: Memory of hellos, shared by all links of the daemon.
    """

    def __init__(
        self,
        config: LinkConfig,
        output: LinkOutput,
        *,
        identity_for: Callable[[str], Identity | None],
        hellos: HelloMemory,
        random_bytes: Callable[[int], bytes],
        make_key: MakeKey | None = None,
    ) -> None:
        self.limits = config
        "May be replaced; what is open stays."
        self._output = output
        self._identity_for = identity_for
        self._hellos = hellos
        self._random_bytes = random_bytes
        self._make_key = make_key
        self._dialing: dict[str, Initiator] = {}
        self._accepting: dict[str, _Accepting] = {}
        self._peer_keys: dict[str, tuple[str, bytes]] = {}
        self.deadlines: dict[str, float] = {}
        self._completed: deque[OpenChannel] = deque()

    @property
    def under_way(self) -> bool:
        """True while any handshake is under way."""
        return bool(self._dialing or self._accepting)

    def next_completed(self) -> OpenChannel | None:
        """Return the oldest channel not yet returned, or None.

        It holds the envelopes that overtook `finished`, in order.
        """
        return self._completed.popleft() if self._completed else None

    def dial(
        self, identity: Identity, peer_did: str, meta: MetaProtocol, *, now: Moment
    ) -> str:
        """Start one as requester and return its session id."""
        initiator = Initiator(
            self.limits.handshake,
            identity=identity,
            peer_did=peer_did,
            meta=meta,
            now=now,
            random_bytes=self._random_bytes,
            make_key=self._make_key,
        )
        self._dialing[initiator.session_id] = initiator
        self._set_deadline(initiator)
        self._pump(initiator.session_id, now=now)
        return initiator.session_id

    def key_checked(
        self, session_id: str, error: PeerError | None, *, now: Moment
    ) -> None:
        """Say whether the peer's DID owns its key; see `NeedPeerKeyCheck`."""
        handshake = self._handshake(session_id)
        if handshake is None:
            return
        if error is None:
            handshake.key_checked(None, now=now)
        else:
            handshake.key_checked(error.detail, now=now, code=error.code)
        self._pump(session_id, now=now)

    def answer(self, session_id: str, meta: MetaProtocol, *, now: Moment) -> None:
        """Accept a hello; see `NeedHelloAnswer`."""
        accepting = self._accepting.get(session_id)
        if accepting is None:
            return
        accepting.responder.answer(meta, now=now)
        self._pump(session_id, now=now)

    def refuse(
        self, session_id: str, code: ErrorCode, detail: str, *, now: Moment
    ) -> None:
        """Refuse a hello with `code`."""
        accepting = self._accepting.get(session_id)
        if accepting is None:
            return
        accepting.our_refusal = True
        accepting.responder.refuse(code, detail, now=now)
        self._pump(session_id, now=now)

    def abandon(self, session_id: str) -> None:
        """Forget one that nobody waits for any more."""
        self._dialing.pop(session_id, None)
        self._accepting.pop(session_id, None)
        self._peer_keys.pop(session_id, None)
        self.deadlines.pop(session_id, None)

    def receive_hello(self, hello: SourceHello, *, channels: int, now: Moment) -> None:
        """Start one as provider.

        Args:
            channels: Channels that are open on the link.

        Raises:
            PeerError: It is not for us; the peer has been told, as it is when we have
                no room for another one.
        """
        identity = self._identity_for(hello.destination_did)
        refusal: PeerError | None = None
        if identity is None:
            refusal = PeerError(
                ErrorCode.NOT_ALLOWED, f"{hello.destination_did[:200]!r} {NOT_HERE}"
            )
        elif hello.session_id in self._dialing or hello.session_id in self._accepting:
            refusal = PeerError(ErrorCode.NOT_ALLOWED, "session id is in use")
        elif len(self._accepting) >= self.limits.max_handshakes:
            refusal = PeerError(ErrorCode.NOT_ALLOWED, TOO_MANY_HANDSHAKES)
        elif channels >= self.limits.max_channels:
            refusal = PeerError(ErrorCode.NOT_ALLOWED, TOO_MANY_CHANNELS)
        if refusal is not None or identity is None:
            assert refusal is not None
            self._output.respond(
                refusal.code,
                refusal.detail,
                source_did=hello.destination_did,
                destination_did=hello.source_did,
                original_type="sourceHello",
                original_id=hello.message_id,
                now=now,
            )
            if refusal.detail in NO_ROOM:
                # Our limits, which the peer cannot know: no fault of its.
                return
            raise refusal
        responder = Responder(
            self.limits.handshake,
            identity=identity,
            hello=hello,
            now=now,
            random_bytes=self._random_bytes,
            make_key=self._make_key,
        )
        self._accepting[hello.session_id] = _Accepting(responder, hello)
        self._set_deadline(responder)
        self._pump(hello.session_id, now=now)

    def receive(
        self, message: DestinationHello | Finished | Response, *, now: Moment
    ) -> None:
        """Handle a message of one that is under way.

        Raises:
            PeerError: It belongs to none.
        """
        if isinstance(message, Response):
            self._receive_response(message)
            return
        handshake = self._handshake(message.session_id)
        if handshake is None:
            raise PeerError(ErrorCode.NOT_ALLOWED, "message of an unknown session")
        handshake.receive(message, now=now)
        self._pump(message.session_id, now=now)

    def answer_unreadable(self, error: UnreadableMessage, *, now: Moment) -> None:
        """Tell the sender of a text that is no message, so that it need not wait.

        A response is never answered, or two sides could go on for ever.
        """
        kind, session_id = error.text("type"), error.text("sessionId")
        if kind == "response" or self._output.closing:
            return
        handshake = self._handshake(session_id)
        if kind in {"destinationHello", "finished"} and handshake is not None:
            handshake.end(error, now=now)
            self._pump(session_id, now=now)
        self._output.respond(
            error.code,
            error.detail,
            source_did=error.text("destinationDid"),
            destination_did=error.text("sourceDid"),
            original_type=kind,
            original_id=error.text("messageId"),
            now=now,
        )

    def hold(self, envelope: Envelope, size: int) -> bool:
        """Keep an envelope that overtook the requester's `finished`; False if not."""
        for accepting in self._accepting.values():
            if accepting.responder.secret_key_id == envelope.secret_key_id:
                if (
                    len(accepting.held) >= self.limits.max_held_frames
                    or accepting.held_bytes + size > self.limits.max_held_bytes
                ):
                    return False
                accepting.held.append(envelope)
                accepting.held_bytes += size
                return True
        return False

    def handle_timer(self, *, now: Moment) -> None:
        """Fail those that took too long."""
        for session_id in [*self._dialing, *self._accepting]:
            handshake = self._handshake(session_id)
            if handshake is not None:
                handshake.handle_timer(now=now)
                self._pump(session_id, now=now)

    def link_lost(self, reason: str) -> None:
        """End all of them."""
        for session_id in [*self._dialing, *self._accepting]:
            self.abandon(session_id)
            self._output.tell(
                HandshakeRefused(session_id, ErrorCode.NOT_ALLOWED, reason, False)
            )

    def _set_deadline(self, handshake: Initiator | Responder) -> None:
        deadline = handshake.get_timer()
        if deadline is not None:
            self.deadlines[handshake.session_id] = deadline

    def _handshake(self, session_id: str) -> Initiator | Responder | None:
        if session_id in self._dialing:
            return self._dialing[session_id]
        accepting = self._accepting.get(session_id)
        return accepting.responder if accepting else None

    def _receive_response(self, response: Response) -> None:
        for session_id, initiator in self._dialing.items():
            if initiator.is_refused_by(response):
                self.abandon(session_id)
                detail = response.detail[:200]
                self._output.tell(
                    HandshakeRefused(session_id, response.code, detail, True)
                )
                return
        # Not authenticated: of an open channel it proves nothing.
        raise PeerError(
            ErrorCode.NOT_ALLOWED,
            f"response code={int(response.code)} {response.detail[:200]!r}",
        )

    def _pump(self, session_id: str, *, now: Moment) -> None:
        """Pass on what a handshake wants to say."""
        handshake = self._handshake(session_id)
        if handshake is None:
            return
        self._output.say(handshake.messages_to_send())
        while (event := handshake.next_event()) is not None:
            match event:
                case NeedKeyCheck(did, key_id, public_key):
                    self._peer_keys[session_id] = key_id, public_key
                    if self._refuse_repeated(session_id, now=now):
                        self._pump(session_id, now=now)
                        return
                    self._output.tell(
                        NeedPeerKeyCheck(session_id, did, key_id, public_key)
                    )
                case NeedHelloReply(peer_did, meta) if isinstance(handshake, Responder):
                    self._output.tell(
                        NeedHelloAnswer(
                            session_id,
                            handshake.local_did,
                            peer_did,
                            self._peer_keys[session_id][1],
                            meta,
                        )
                    )
                case HandshakeCompleted():
                    self._complete(session_id, event, now=now)
                    return
                case HandshakeFailed(code, detail, timed_out):
                    self._output.say(handshake.messages_to_send())
                    accepting = self._accepting.get(session_id)
                    self.abandon(session_id)
                    self._output.tell(
                        HandshakeRefused(
                            session_id, code, detail, False, timed_out=timed_out
                        )
                    )
                    # What we cannot do now, or our limits refuse, is no fault of its.
                    ours = code is ErrorCode.UNAVAILABLE
                    if accepting is not None and not (accepting.our_refusal or ours):
                        self._output.fault(code, detail)
                    return

    def _refuse_repeated(self, session_id: str, *, now: Moment) -> bool:
        """Refuse a hello that was seen before.

        Its signature is verified by now; otherwise anybody could fill the memory.
        """
        accepting = self._accepting.get(session_id)
        if accepting is None:
            return False
        try:
            self._hellos.check(accepting.hello, now=now.monotonic)
        except PeerError as exc:
            accepting.responder.refuse(exc.code, exc.detail, now=now)
            return True
        return False

    def _complete(
        self, session_id: str, event: HandshakeCompleted, *, now: Moment
    ) -> None:
        key_id, public_key = self._peer_keys[session_id]
        accepting = self._accepting.get(session_id)
        self.abandon(session_id)
        opened = ChannelOpened(
            event.keys.secret_key_id,
            session_id,
            ChannelRole.PROVIDER if accepting else ChannelRole.REQUESTER,
            event.local_did,
            event.peer_did,
            public_key,
            event.own_meta,
            event.peer_meta,
            event.version,
            event.frame_format,
            event.expires_at,
            key_id,
        )
        channel = OpenChannel.fresh(
            opened,
            event.keys,
            self.limits,
            sent_iv=event.sent_iv,
            finished_iv=event.finished_iv,
            random_bytes=self._random_bytes,
            now=now.monotonic,
        )
        channel.held = accepting.held if accepting else []
        self._completed.append(channel)
