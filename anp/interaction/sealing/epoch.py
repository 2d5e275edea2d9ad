"""One epoch of one member: its keys, and the messages that it seals and opens."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

from cryptography.hazmat.primitives.asymmetric import ec, x25519

from anp.interaction.sealing.encoding import (
    DidSigner,
    RandomBytes,
    ec_public_bytes,
    ec_public_key,
    invalid,
    sign_ec,
    verify_ec,
)
from anp.interaction.sealing.errors import SealingError, SealingFault, Suspicion
from anp.interaction.sealing.message import MESSAGE_LABEL, MessageHeader, SealedBytes
from anp.interaction.sealing.packages import (
    KeyGrant,
    KeyPackage,
    SeenMessages,
    pair_keys,
)
from anp.interaction.sealing.ratchet import (
    KEY_SIZE,
    MAX_SKIPPED,
    MAX_STEP,
    Ratchet,
    open_sealed,
    seal,
)
from anp.interaction.sealing.transcript import Transcript

MAX_PENDING = 4096
"Most messages of our own that the hub has not answered yet."

# The order of P-256: private keys are the numbers below it.
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


@dataclass(frozen=True, slots=True)
class SealedMessage:
    """A message of ours, to be sent to the hub."""

    data: bytes
    epoch: int
    counter: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedMessage:
    """An authentic message of another member."""

    sender: str
    epoch: int
    counter: int
    content: bytes | None
    "None while the sender's chain key is not here; `unlock` opens it later."

    suspicions: tuple[Suspicion, ...] = ()

    is_stale: bool = False
    """It was sealed for the members before a change that came first: the two crossed,
    or the hub kept the change from the sender. A removed member may read it."""


class Inbound:
    """The messages of one sender in one epoch, as far as they came."""

    __slots__ = ("commitment", "keys", "last", "missing", "ratchet")

    def __init__(self) -> None:
        self.ratchet: Ratchet | None = None
        self.commitment = b""
        self.last = 0
        "Highest counter that came."

        self.missing: dict[int, None] = {}
        "Lower counters that did not come."

        self.keys: dict[int, bytes] = {}
        "Message keys that were passed over, by counter."

    def accept(self, header: MessageHeader) -> Suspicion | None:
        """Take the counter of a message.

        Raises:
            SealingError: REPEATED or OLD.
        """
        counter = header.counter
        if counter in self.missing:
            del self.missing[counter]
            return Suspicion.REORDERED
        if counter <= self.last:
            raise SealingError(
                SealingFault.REPEATED, f"message {counter} came before, or is too old"
            )
        if counter - self.last > MAX_STEP:
            raise SealingError(
                SealingFault.OLD, f"over {MAX_STEP} messages before it are missing"
            )
        first = max(self.last + 1, header.previous + 1 - MAX_SKIPPED)
        missing = range(first, header.previous + 1)
        is_gap = header.previous > self.last
        self.last = counter
        self.missing |= dict.fromkeys(missing)
        _keep_newest(self.missing)
        return Suspicion.GAP if is_gap else None

    def key(self, header: MessageHeader) -> bytes:
        """Return the key of a message and delete it here.

        Raises:
            SealingError: NO_KEY if no chain key is here, OLD if the key is deleted.
        """
        if self.ratchet is None:
            raise SealingError(SealingFault.NO_KEY, "the sender's chain key is missing")
        counter = header.counter
        if counter - self.ratchet.counter > MAX_STEP:
            raise SealingError(SealingFault.OLD, "it is too far ahead")
        while self.ratchet.counter < counter:
            number = self.ratchet.counter
            self.keys[number] = self.ratchet.step()
            if header.previous < number:
                # The hub refused it: nobody needs to read that message.
                del self.keys[number]
        _keep_newest(self.keys)
        if self.ratchet.counter == counter:
            return self.ratchet.step()
        if counter not in self.keys:
            raise SealingError(SealingFault.OLD, "the key of this message is deleted")
        return self.keys.pop(counter)


class OwnMessages:
    """Our own messages of one epoch."""

    __slots__ = ("counter", "granted", "last_taken", "pending", "ratchet", "start")

    def __init__(self) -> None:
        self.ratchet: Ratchet | None = None
        self.start: bytes | None = None
        "The first chain key, kept until every member of the epoch has it."

        self.granted: dict[str, None] = {}
        "Members that have it."

        self.counter = 0
        "The last counter that was used."

        self.last_taken = 0
        "The highest counter of a message that has its place."

        self.pending: dict[int, bytes] = {}
        "Digests of messages that have no place yet, by counter."

    @property
    def previous(self) -> int:
        """The highest counter that was not refused."""
        return max(self.last_taken, *self.pending, 0)


class SealedEpoch:
    """One member's side of one epoch."""

    def __init__(
        self, number: int, entry: bytes, members: Iterable[str], *, me: str
    ) -> None:
        self.number = number
        self.entry = entry
        self.members = sorted(members)
        self.me = me
        self.agreement: x25519.X25519PrivateKey | None = None
        "Deleted as soon as the packages of all members are here."

        self._signing: ec.EllipticCurvePrivateKey | None = None
        self.packages: dict[str, KeyPackage] = {}
        self.to_pairs: dict[str, bytes] = {}
        "Secrets for granting our chain key, each until it is used."

        self.from_pairs: dict[str, bytes] = {}
        "Secrets for opening the grant of another member, each until it is used."

        self.own = OwnMessages()
        self.inbound: dict[str, Inbound] = {}
        self.transcript = Transcript(entry)
        self.is_forked = False
        "Some member was shown something else; we say nothing more in this epoch."

        self._keys: dict[str, ec.EllipticCurvePublicKey] = {}
        self.changed: set[str] = set()
        "Rows to store: `keys`, `own`, and DIDs whose messages came."

    # Keys

    def begin(
        self, *, signer: DidSigner, random_bytes: RandomBytes, seen: SeenMessages | None
    ) -> KeyPackage:
        """Make our keys for this epoch and return the package of them."""
        self.agreement = x25519.X25519PrivateKey.from_private_bytes(
            random_bytes(KEY_SIZE)
        )
        self._signing = private_ec(random_bytes(KEY_SIZE + 8))
        package = KeyPackage(
            epoch=self.number,
            entry=self.entry,
            did=self.me,
            key=signer.key,
            agreement=self.agreement.public_key().public_bytes_raw(),
            signing=ec_public_bytes(self._signing.public_key()),
            seen=seen,
        )
        package = replace(package, signature=signer.sign(package.signed()))
        self.packages[self.me] = package
        self._tidy()
        return package

    @property
    def signing(self) -> ec.EllipticCurvePrivateKey:
        """The key that signs our messages of this epoch."""
        if self._signing is None:
            raise SealingError(SealingFault.NOT_MEMBER, "we have no keys of this epoch")
        return self._signing

    @signing.setter
    def signing(self, key: ec.EllipticCurvePrivateKey) -> None:
        self._signing = key

    def add_package(self, package: KeyPackage) -> None:
        """Take the package of another member, whose signature was checked."""
        ec_public_key(package.signing)
        if self.agreement is None:
            raise SealingError(SealingFault.OLD, "our key of this epoch is deleted")
        pair = pair_keys(
            self.agreement,
            package.agreement,
            entry=self.entry,
            me=self.me,
            did=package.did,
        )
        self.to_pairs[package.did], self.from_pairs[package.did] = pair
        self.packages[package.did] = package
        self._tidy()

    def grant(self, current: Iterable[str]) -> KeyGrant | None:
        """Return the grant to those who have none yet and are members still."""
        own = self.own
        if own.start is None:
            return None
        pairs = {did: self.to_pairs.pop(did) for did in current if did in self.to_pairs}
        if not pairs:
            return None
        found = KeyGrant.make(
            own.start, pairs, entry=self.entry, by=self.me, key=self.signing
        )
        own.granted |= dict.fromkeys(pairs)
        self._tidy()
        return found

    def take_grant(self, grant: KeyGrant) -> None:
        """Take the chain key of another member, if it is given to us.

        Raises:
            SealingError: NO_KEY without the sender's package; FORGED, FORK, INVALID.
        """
        self._verify(grant.by, grant.signature, grant.signed())
        sender = self.inbound.get(grant.by) or Inbound()
        if sender.commitment and sender.commitment != grant.commitment:
            raise SealingError(
                SealingFault.FORK, f"{grant.by} gave out two chain keys in one epoch"
            )
        if self.me in grant.keys and sender.ratchet is None:
            sender.ratchet = Ratchet(grant.open(self.me, self.from_pairs[grant.by]))
            del self.from_pairs[grant.by]
            self.changed.add("keys")
        sender.commitment = grant.commitment
        self.inbound[grant.by] = sender
        self.changed.add(grant.by)

    def _tidy(self) -> None:
        """Delete private keys that nobody needs any more."""
        self.changed |= {"keys", "own"}
        if len(self.packages) == len(self.members):
            self.agreement = None
            if len(self.own.granted) == len(self.members) - 1:
                self.own.start = None

    # Messages

    def seal(self, content: bytes, *, random_bytes: RandomBytes) -> SealedMessage:
        """Seal a message; see `SealedMember.seal`."""
        own = self.own
        if self.is_forked:
            raise SealingError(
                SealingFault.FORK,
                "the hub has shown members different messages; nothing is said in "
                "this epoch any more",
            )
        if len(own.pending) >= MAX_PENDING:
            raise invalid(f"{MAX_PENDING} messages are unanswered by the hub")
        if own.ratchet is None:
            own.start = random_bytes(KEY_SIZE)
            own.ratchet = Ratchet(own.start)
            self._tidy()
        header = MessageHeader(
            self.entry,
            self.members.index(self.me),
            own.ratchet.counter,
            own.previous,
            self.transcript.seen,
        )
        encoded = header.encode()
        own.counter = own.ratchet.counter
        body = encoded + seal(own.ratchet.step(), content, encoded)
        own.pending[own.counter] = hashlib.sha256(body).digest()
        self.changed.add("own")
        signature = sign_ec(self.signing, MESSAGE_LABEL + body)
        return SealedMessage(body + signature, self.number, own.counter)

    def place_own(self, counter: int) -> None:
        """Note that our message has its place, after all that was taken before."""
        digest = self.own.pending.pop(counter, None)
        if digest is None:
            raise SealingError(SealingFault.REPEATED, "our message has its place")
        self.own.last_taken = max(self.own.last_taken, counter)
        self.transcript.add(digest)
        self.changed.add("own")

    def withdraw_own(self, counter: int) -> None:
        """Note that the hub refused our message, so that nobody misses it."""
        self.own.pending.pop(counter, None)
        self.changed.add("own")

    def open(self, message: SealedBytes) -> OpenedMessage:
        """Open a message at its place; see `SealedMember.open`."""
        header, body = message.header, message.body
        sender = self._sender(header)
        self._verify(sender, message.signature, MESSAGE_LABEL + body)
        inbound = self.inbound.setdefault(sender, Inbound())
        suspicions = [inbound.accept(header), self.transcript.compare(header.seen)]
        self.is_forked |= Suspicion.FORK in suspicions
        self.transcript.add(hashlib.sha256(body).digest())
        self.changed |= {"own", sender}
        content = None
        if inbound.ratchet is not None:
            try:
                key = inbound.key(header)
                content = open_sealed(key, message.content, message.header_bytes)
            except SealingError:
                # Its sender signed it: all members count it, and nobody can read it.
                suspicions.append(Suspicion.UNREADABLE)
        return OpenedMessage(
            sender=sender,
            epoch=self.number,
            counter=header.counter,
            content=content,
            suspicions=tuple(one for one in suspicions if one is not None),
        )

    def unlock(self, message: SealedBytes) -> bytes:
        """Return the content of a message that `open` took without a key."""
        sender = self._sender(message.header)
        self._verify(sender, message.signature, MESSAGE_LABEL + message.body)
        inbound = self.inbound.get(sender)
        if inbound is None or inbound.ratchet is None:
            raise SealingError(SealingFault.NO_KEY, f"the key of {sender} is missing")
        key = inbound.key(message.header)
        self.changed.add(sender)
        return open_sealed(key, message.content, message.header_bytes)

    def _sender(self, header: MessageHeader) -> str:
        if header.sender >= len(self.members):
            raise SealingError(SealingFault.GHOST, "its sender is no member")
        sender = self.members[header.sender]
        if sender == self.me:
            raise SealingError(SealingFault.REPEATED, "it is a message of ours")
        return sender

    def _verify(self, did: str, signature: bytes, data: bytes) -> None:
        key = self._keys.get(did)
        if key is None:
            if did not in self.packages:
                raise SealingError(
                    SealingFault.NO_KEY, f"the keys of {did} are missing"
                )
            key = self._keys[did] = ec_public_key(self.packages[did].signing)
        if not verify_ec(key, signature, data):
            raise SealingError(SealingFault.FORGED, f"it is not signed by {did}")


def private_ec(seed: bytes) -> ec.EllipticCurvePrivateKey:
    """Return the P-256 key of 40 random bytes, which makes all keys equally likely."""
    number = int.from_bytes(seed, "big") % (_ORDER - 1) + 1
    return ec.derive_private_key(number, ec.SECP256R1())


def _keep_newest(found: dict[int, object] | dict[int, None] | dict[int, bytes]) -> None:
    while len(found) > MAX_SKIPPED:
        del found[min(found)]
