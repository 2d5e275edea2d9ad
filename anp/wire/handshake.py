"""The handshake: one core for each side (WIRE §1, §2).

Theory of operation
-------------------

A handshake turns two DIDs into one short-term key. The requester is the `Initiator`,
the provider the `Responder`; both share what `side.Handshake` has. Four messages cross:

    Initiator                                 Responder
    sourceHello       ------------------->    verify, NeedKeyCheck, NeedAnswer
                      <-------------------    destinationHello
    NeedKeyCheck      <-------------------    finished
    finished          ------------------->    HandshakeCompleted
    HandshakeCompleted

Each hello carries a fresh P-256 key, a random text and a signature over the whole JSON
as it was sent. Both sides compute the same secret from the two fresh keys and derive
two traffic keys from it, one for each direction, together with the id by which the pair
is called from then on (`keys.derive_keys`). `finished` is the first message under such
a key: it holds that id, encrypted, and so proves that its sender has the key.

A signature proves that somebody holds the key that the hello names. It does not prove
that this key belongs to the DID. Only a resolver can tell, and a resolver needs the
network, so the core stops and emits `NeedKeyCheck`; our shell answers with
`key_checked`. The responder stops a second time, with `NeedHelloReply`: policy, and
which of the offered protocols it confirms, are not the core's business. The shell
answers with `answer` or `refuse`.

The order of the checks is the protection. A responder first looks at the address and
the format, then at the signature, then asks about the DID, and only then makes a key
of its own, so that a stranger's hello costs the check of one signature. An
initiator takes nothing that it did not offer: version, cipher suite, group, protocol.

Three details follow from how the official SDK behaves. The responder sends its
`finished` right behind its hello, before it has heard the initiator's; so an initiator
whose resolver is still at work keeps that one message in `_early_finished`. The hello
must come first, or the SDK gives up. And frames under the new key may overtake the
initiator's `finished`; `secret_key_id` lets the link hold them until the end.

Every handshake has one deadline, checked on each input. Whatever goes wrong, the states
end in `FAILED` with one `HandshakeFailed`, and the peer gets one `response`: with the
detail where the fault is in its own message, with a fixed phrase where a resolver or a
policy decided, since those reasons may name what is not its business. A `response` is
never answered. The end that is wanted is `HandshakeCompleted`, which carries the keys,
what both sides offered, and the shorter of the two lifetimes.
"""

from __future__ import annotations

from anp.errors import ErrorCode, LocalError, PeerError
from anp.wire.frames import FrameFormat, find_format
from anp.wire.hellos import DESTINATION_HELLO, SOURCE_HELLO
from anp.wire.keys import derive_keys
from anp.wire.messages import DestinationHello, Finished, Message, Response, SourceHello
from anp.wire.meta_protocol import MetaProtocol, highest_version, is_readable
from anp.wire.moment import Moment
from anp.wire.outcome import HandshakeConfig, NeedHelloReply, NeedKeyCheck
from anp.wire.proof import Identity, verify_hello
from anp.wire.side import (
    CIPHER_SUITE,
    GROUP,
    NOTHING,
    Handshake,
    HandshakeState,
    MakeKey,
    RandomBytes,
    told_of,
)


class Initiator(Handshake):
    """The requester's side of one handshake (WIRE §1).

    After each call send what `messages_to_send` returns, act on every `next_event`,
    and re-arm `get_timer`. The shell reads `now` anew for each call.

    Args:
        identity: Who we are.
        peer_did: Whom to reach.
        meta: What to offer (ANP-76, ANP-86); its version is set here (ANP-Q15).
    """

    def __init__(
        self,
        config: HandshakeConfig,
        *,
        identity: Identity,
        peer_did: str,
        meta: MetaProtocol,
        now: Moment,
        random_bytes: RandomBytes,
        make_key: MakeKey | None = None,
    ) -> None:
        super().__init__(
            config,
            identity=identity,
            peer_did=peer_did,
            session_id=random_bytes(16).hex(),
            state=HandshakeState.EXPECT_DESTINATION_HELLO,
            now=now,
            random_bytes=random_bytes,
            make_key=make_key,
            meta=meta.of_version(highest_version(config.versions)),
        )
        self._key = self._fresh_key()
        self._random = self._random_text()
        self._message_id = self._random_id()
        self._early_finished: Finished | None = None
        versions = '","'.join(known.version for known in config.formats)
        self._send_hello(
            SOURCE_HELLO,
            head=self._head(self._message_id),
            random=self._random,
            key=self._key,
            meta=self._own_meta,
            more={
                "supported_versions": f'["{versions}"]',
                "cipher_suites": f'["{CIPHER_SUITE}"]',
                "supported_groups": f'["{GROUP}"]',
            },
        )

    def is_refused_by(self, response: Response) -> bool:
        """Say if `response` refuses our `sourceHello`.

        It is not authenticated, but who could forge it on this link could as well
        keep the peer's answer back (WIRE row 25).
        """
        # The SDK's generator has no originalMessageId and puts it in messageId.
        answered = response.original_message_id or response.message_id
        return response.code is not ErrorCode.OK and answered == self._message_id

    def _handle(self, message: Message, *, now: Moment) -> None:
        match self._state, message:
            case HandshakeState.EXPECT_DESTINATION_HELLO, DestinationHello():
                self._receive_hello(message, now)
            case HandshakeState.EXPECT_KEY_CHECK, Finished() if (
                self._early_finished is None
            ):
                # The responder sends it right behind its hello, while our resolver is
                # still at work (WIRE §1).
                self._early_finished = message
            case HandshakeState.EXPECT_FINISHED, Finished():
                self._complete(message, now)
            case _, Response():
                if self.is_refused_by(message):
                    raise PeerError(message.code, f"refused: {message.detail[:200]!r}")
            case _:
                raise self._unexpected(message)

    def _receive_hello(self, hello: DestinationHello, now: Moment) -> None:
        # Before the rest: a hello of another version may mean other things by it.
        used = find_format(hello.version, self._config.formats)
        public_key = verify_hello(hello, now=now)
        # Nothing may be chosen that was not offered (WIRE row 14). Both versions of the
        # answer name the one that is used, and what has two meanings is refused.
        for what, chosen, offered in (
            ("selectedVersion", hello.selected_version, used.version),
            ("cipherSuite", hello.cipher_suite, CIPHER_SUITE),
            ("keyShare.group", hello.key_share.group, GROUP),
        ):
            if chosen != offered:
                raise PeerError(
                    ErrorCode.INVALID_ENCRYPTION_KEY,
                    f"{what} is {chosen[:60]!r}, expected was {offered}",
                )
        hello.meta.check_answer(self._own_meta, self._config.versions)
        self._version, self._format = hello.meta.version, used
        self._peer_meta = hello.meta
        self._peer_expires = hello.key_share.expires
        self._keys = derive_keys(
            self._key.exchange(hello.key_share.key_exchange),
            source_random=self._random,
            destination_random=hello.random,
            is_initiator=True,
        )
        self._peer_hello = hello
        self._state = HandshakeState.EXPECT_KEY_CHECK
        self._events.append(
            NeedKeyCheck(hello.source_did, hello.verification_method.id, public_key)
        )

    def _key_accepted(self, *, now: Moment) -> None:
        self._state = HandshakeState.EXPECT_FINISHED
        self._send_finished()
        if self._early_finished is not None:
            self._complete(self._early_finished, now)


class Responder(Handshake):
    """The provider's side of one handshake (WIRE §1).

    It is made for a parsed `sourceHello` and verifies it at once. Use it like
    `Initiator`. Neither a key is made nor a DID believed before the hello's signature
    was verified.

    Args:
        identity: Who we are: the identity the hello is addressed to.
        hello: The requester's hello.
    """

    def __init__(
        self,
        config: HandshakeConfig,
        *,
        identity: Identity,
        hello: SourceHello,
        now: Moment,
        random_bytes: RandomBytes,
        make_key: MakeKey | None = None,
    ) -> None:
        super().__init__(
            config,
            identity=identity,
            peer_did=hello.source_did,
            session_id=hello.session_id,
            state=HandshakeState.EXPECT_KEY_CHECK,
            now=now,
            random_bytes=random_bytes,
            make_key=make_key,
            meta=NOTHING,
        )
        self._hello = hello
        self._peer_hello = hello
        try:
            self._key_exchange = self._receive_hello(hello, now)
        except PeerError as exc:
            self._fail(exc.code, exc.detail)

    def answer(self, meta: MetaProtocol, *, now: Moment) -> None:
        """Answer `NeedHelloReply`: sends `destinationHello` and `finished`.

        Args:
            meta: What to confirm: `used_protocol_hash`, else `selected_protocol`, else
                neither, which means negotiate (ANP-87, ANP-Q19). Its version is set
                here, to the one that is used (ANP-Q15).

        Raises:
            LocalError: Nobody asked, or `meta` confirms what was not offered.
        """
        if not self._goes_on(now):
            return
        if self._state is not HandshakeState.EXPECT_ANSWER:
            raise LocalError(f"answer in {self._state.name}")
        meta = meta.of_version(self._version)
        try:
            meta.check_answer(self._hello.meta, self._config.versions)
        except PeerError as exc:
            raise LocalError(f"our own answer is wrong: {exc.detail}") from exc
        if meta.candidate_protocols:
            raise LocalError("an answer offers no candidateProtocols")
        self._own_meta = meta
        try:
            self._answer(meta)
        except PeerError as exc:
            self._fail(exc.code, exc.detail)

    def refuse(self, code: ErrorCode, detail: str, *, now: Moment) -> None:
        """Refuse the peer, in place of `answer` or `key_checked`.

        Args:
            code: What the peer is told.
            detail: Why, for our log only: it may name what is not the peer's business.
        """
        if self._goes_on(now):
            self._fail(code, detail, told=told_of(code))

    def _receive_hello(self, hello: SourceHello, now: Moment) -> str:
        """Verify the hello and return the peer's ephemeral key in hex."""
        if hello.destination_did != self._identity.did:
            raise PeerError(ErrorCode.NOT_ALLOWED, "a hello to another DID")
        # Before the rest: a hello of another version may mean other things by it.
        used = self._choose_format(hello)
        public_key = verify_hello(hello, now=now)
        if CIPHER_SUITE not in hello.cipher_suites:
            raise _nothing_common("cipher suite", CIPHER_SUITE)
        share = next((s for s in hello.key_shares if s.group == GROUP), None)
        if share is None:
            raise _nothing_common("group", GROUP)
        self._version = hello.meta.common_version(self._config.versions)
        self._format = used
        self._peer_meta = hello.meta
        self._peer_expires = share.expires
        self._events.append(
            NeedKeyCheck(hello.source_did, hello.verification_method.id, public_key)
        )
        return share.key_exchange

    def _choose_format(self, hello: SourceHello) -> FrameFormat:
        """Return the format of the highest common message version (ANP-15)."""
        formats = self._config.formats
        versions = [known.version for known in formats]
        # The hello names the version it is written in; every speaker of 1.x also
        # speaks 1.0, and lists what else it speaks (ANP-Q15).
        if not is_readable(versions, hello.version):
            raise PeerError(
                ErrorCode.INVALID_ENCRYPTION_KEY,
                f"version is {hello.version[:40]!r}, we speak {', '.join(versions)}",
            )
        common = [v for v in versions if v in hello.supported_versions]
        if not common:
            raise _nothing_common("version", ", ".join(versions))
        return find_format(highest_version(common), formats)

    def _handle(self, message: Message, *, now: Moment) -> None:
        match self._state, message:
            case HandshakeState.EXPECT_FINISHED, Finished():
                self._complete(message, now)
            case _, Response():
                # Not authenticated, so only a hint; the timer ends what is dead.
                return
            case _:
                raise self._unexpected(message)

    def _key_accepted(self, *, now: Moment) -> None:
        self._state = HandshakeState.EXPECT_ANSWER
        self._events.append(NeedHelloReply(self._peer_did, self._peer_meta))

    def _answer(self, meta: MetaProtocol) -> None:
        key = self._fresh_key()
        random = self._random_text()
        self._keys = derive_keys(
            key.exchange(self._key_exchange),
            source_random=self._hello.random,
            destination_random=random,
            is_initiator=False,
        )
        # In the other order the SDK gives up (WIRE §1).
        version = self._format.version
        self._send_hello(
            DESTINATION_HELLO,
            head=self._head(self._random_id(), version=version),
            random=random,
            key=key,
            meta=meta,
            more={"selected_version": version, "cipher_suite": CIPHER_SUITE},
        )
        self._send_finished()
        self._state = HandshakeState.EXPECT_FINISHED


def _nothing_common(what: str, ours: str) -> PeerError:
    return PeerError(
        ErrorCode.INVALID_ENCRYPTION_KEY, f"no common {what}: we have {ours} only"
    )
