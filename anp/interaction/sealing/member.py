"""One member of one sealed group, over all its epochs.

The shell gives it everything in the order that the hub gave to the group: `take` for
entries, packages and grants, `open` for messages of others, `place` for our own. After
each input it stores `changed_rows` together with what it sends, in one transaction, and
sends only then: so no counter is used twice, whenever the daemon is killed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from anp.interaction.sealing.encoding import SealingMeans, invalid
from anp.interaction.sealing.epoch import OpenedMessage, SealedEpoch, SealedMessage
from anp.interaction.sealing.errors import SealingError, SealingFault, Suspicion
from anp.interaction.sealing.membership import (
    ChangeKind,
    MemberChange,
    MemberRank,
    MembershipChain,
    MembershipEntry,
)
from anp.interaction.sealing.message import SealedBytes
from anp.interaction.sealing.packages import KeyGrant, KeyPackage
from anp.interaction.sealing.rows import KEYS, OWN, epoch_row, json_bytes, read_epoch

MAX_EPOCHS: Final = 8
"""Newest epochs whose keys are kept. A member that was away for more changes of members
than that cannot read what was said before the newest ones."""

CHAIN: Final = "chain"


@dataclass(slots=True)
class SealingStep:
    """Everything that follows from one input."""

    send: list[dict[str, Any]] = field(default_factory=list)
    "Packages and grants for the group, in order, as JSON."

    suspicions: list[Suspicion] = field(default_factory=list)
    "Oddities in what a member says that it has seen."

    unlocked: set[str] = field(default_factory=set)
    "DIDs of members whose chain key came, so that `unlock` may succeed now."


class SealedMember:
    """One member's side of a sealed group."""

    def __init__(self, group: str, owner: str, means: SealingMeans) -> None:
        """Begin without knowing anything of the group but who founded it.

        Args:
            group: Its id.
            owner: DID of the founder, as the invitation named it and we trust it.
        """
        self._me = means.signer.did
        self._means = means
        self._chain = MembershipChain(group, owner, verifies=means.verifies)
        self._epochs: dict[int, SealedEpoch] = {}
        self._changed: set[str] = set()
        self._dropped: set[str] = set()

    @property
    def chain(self) -> MembershipChain:
        """The entries, and who is a member by them."""
        return self._chain

    @property
    def epoch(self) -> int:
        """The newest epoch; 0 before there is one."""
        return self._chain.epoch

    @property
    def is_member(self) -> bool:
        """True while we are a member."""
        return self._me in self._chain.members

    # Membership

    def propose(
        self, changes: Sequence[MemberChange], *, at: datetime
    ) -> dict[str, Any]:
        """Return the signed entry that changes members, for the hub, as JSON.

        It counts once it came back in the hub's order. If another came in its place,
        propose again.
        """
        if not self._chain.epoch:
            founding = MemberChange(ChangeKind.ADD, self._me, MemberRank.OWNER)
            changes = (founding, *changes)
        entry = self._chain.propose(changes, at=at, signer=self._means.signer)
        return {"entry": entry.json()}

    def take(self, value: Any) -> SealingStep:
        """Take an entry, a package or a grant of anybody, also our own.

        Raises:
            SealingError: It is refused. REPEATED is harmless, everything else is not
                what an honest hub passes on.
        """
        if not isinstance(value, Mapping) or len(value) != 1:
            raise invalid("it is neither an entry nor a package nor a grant")
        match next(iter(value.items())):
            case ("entry", content):
                return self._take_entry(MembershipEntry.read(content))
            case ("package", content):
                return self._take_package(KeyPackage.read(content))
            case ("grant", content):
                return self._take_grant(KeyGrant.read(content))
        raise invalid("it is neither an entry nor a package nor a grant")

    def history(self) -> list[dict[str, Any]]:
        """Return all entries for a new member, which takes them one by one."""
        return [{"entry": one.json()} for one in self._chain.entries]

    def _take_entry(self, entry: MembershipEntry) -> SealingStep:
        self._chain.take(entry)
        self._changed.add(CHAIN)
        step = SealingStep()
        if self.is_member:
            before = self._epochs.get(entry.epoch - 1)
            epoch = SealedEpoch(
                entry.epoch, entry.hash, self._chain.members, me=self._me
            )
            package = epoch.begin(
                signer=self._means.signer,
                random_bytes=self._means.random_bytes,
                seen=before.transcript.seen if before else None,
            )
            self._epochs[entry.epoch] = epoch
            step.send.append({"package": package.json()})
        for old in [one for one in self._epochs if one <= entry.epoch - MAX_EPOCHS]:
            self._drop(old)
        return step

    def _take_package(self, package: KeyPackage) -> SealingStep:
        epoch = self._known(package.epoch, package.entry)
        known = epoch.packages.get(package.did)
        if known is not None and known.signed() == package.signed():
            raise SealingError(SealingFault.REPEATED, "the package is known")
        if package.did not in epoch.members:
            raise SealingError(
                SealingFault.GHOST, f"{package.did} is no member by the admins' word"
            )
        signed = package.signed()
        if not self._means.verifies(
            package.did, package.key, package.signature, signed
        ):
            raise SealingError(
                SealingFault.FORGED, f"the package is not signed by {package.did}"
            )
        if known is not None:
            raise SealingError(
                SealingFault.FORK, f"{package.did} has two packages in one epoch"
            )
        epoch.add_package(package)
        step = SealingStep(send=self.grants())
        before = self._epochs.get(package.epoch - 1)
        if before and package.seen and package.did in before.members:
            found = before.transcript.compare(package.seen)
            if found:
                epoch.is_forked |= found is Suspicion.FORK
                step.suspicions.append(found)
        return step

    def _take_grant(self, grant: KeyGrant) -> SealingStep:
        epoch = self._of(grant.entry)
        if grant.by not in epoch.members:
            raise SealingError(SealingFault.GHOST, f"{grant.by} is no member")
        if grant.by == self._me:
            raise SealingError(SealingFault.REPEATED, "it is a grant of ours")
        epoch.take_grant(grant)
        is_ours = self._me in grant.keys
        return SealingStep(unlocked={grant.by} if is_ours else set())

    def grants(self) -> list[dict[str, Any]]:
        """Return grants for members that have no chain key of ours yet, as JSON."""
        found = (one.grant(self._chain.members) for one in self._epochs.values())
        return [{"grant": one.json()} for one in found if one]

    # Messages

    def seal(self, content: bytes) -> tuple[SealedMessage, list[dict[str, Any]]]:
        """Seal a message in the newest epoch.

        Returns:
            The message, and the grants that have to be sent before it.

        Raises:
            SealingError: NOT_MEMBER; FORK once members were shown different messages.
        """
        epoch = self._epochs.get(self.epoch)
        if epoch is None or not self.is_member:
            raise SealingError(SealingFault.NOT_MEMBER, "we are no member")
        message = epoch.seal(content, random_bytes=self._means.random_bytes)
        return message, self.grants()

    def place(self, epoch: int, counter: int) -> None:
        """Note that the hub gave our message its place, which is after all so far.

        Raises:
            SealingError: REPEATED if it had one; OLD for an epoch that was dropped.
        """
        self._own(epoch).place_own(counter)

    def withdraw(self, epoch: int, counter: int) -> None:
        """Note that the hub refused our message for good, so that nobody misses it."""
        self._own(epoch).withdraw_own(counter)

    def open(self, data: bytes) -> OpenedMessage:
        """Open a message of another member at its place in the order.

        A late one is opened as long as at most 256 of its sender's are missing.

        Raises:
            SealingError: INVALID, FORGED, GHOST, REPEATED, FORK, GAP or OLD, and the
                message counts for nothing. NO_KEY: its sender's package is missing; it
                has to be given again, before anything that comes after it.
        """
        message = SealedBytes(data)
        epoch = self._of(message.header.entry)
        return replace(epoch.open(message), is_stale=epoch.number < self.epoch)

    def unlock(self, data: bytes) -> bytes:
        """Return the content of a message that was opened before its sender's grant.

        Raises:
            SealingError: NO_KEY while there is none.
        """
        message = SealedBytes(data)
        return self._of(message.header.entry).unlock(message)

    def epoch_of(self, entry: bytes) -> int:
        """Return the number of the epoch that an entry began, by its hash.

        Raises:
            SealingError: OLD if its keys are deleted, FORK if it was never shown.
        """
        return self._of(entry).number

    def _own(self, number: int) -> SealedEpoch:
        found = self._epochs.get(number)
        if found is None:
            raise SealingError(SealingFault.OLD, f"epoch {number} is over")
        return found

    def _of(self, entry: bytes) -> SealedEpoch:
        for epoch in reversed(self._epochs.values()):
            if epoch.entry == entry:
                return epoch
        if any(entry == self._chain.hash_of(one + 1) for one in range(self.epoch)):
            raise SealingError(SealingFault.OLD, "it is of an epoch without keys here")
        raise SealingError(
            SealingFault.FORK, "it is of an epoch that the hub has not shown to us"
        )

    def _known(self, number: int, entry: bytes) -> SealedEpoch:
        if number > self.epoch:
            raise SealingError(SealingFault.GAP, f"entry {number} has not come yet")
        if self._chain.hash_of(number) != entry:
            raise SealingError(
                SealingFault.FORK, f"it is of another history in epoch {number}"
            )
        return self._own(number)

    # Stored state

    def changed_rows(self) -> dict[str, bytes | None]:
        """Return the rows that changed since the last time; None for deleted ones."""
        rows: dict[str, bytes | None] = dict.fromkeys(self._dropped)
        if CHAIN in self._changed:
            rows[CHAIN] = json_bytes(
                {
                    "group": self._chain.group,
                    "owner": self._chain.owner,
                    "entries": [one.json() for one in self._chain.entries],
                }
            )
        for number, epoch in self._epochs.items():
            for name in epoch.changed:
                rows[f"{number}/{name}"] = epoch_row(epoch, name)
            epoch.changed.clear()
        self._changed.clear()
        self._dropped.clear()
        return rows

    @classmethod
    def restore(cls, rows: Mapping[str, bytes], means: SealingMeans) -> SealedMember:
        """Return the member of its stored rows, as it was when they were stored."""
        chain = json.loads(rows[CHAIN])
        found = cls(chain["group"], chain["owner"], means)
        # They were verified before they were stored, and a key may have changed since.
        found._chain.verifies = lambda did, key, signature, data: True
        for one in chain["entries"]:
            found._chain.take(MembershipEntry.read(one))
        found._chain.verifies = means.verifies
        by_epoch: dict[int, dict[str, bytes]] = {}
        for name, row in rows.items():
            number, _, rest = name.partition("/")
            if rest:
                by_epoch.setdefault(int(number), {})[rest] = row
        found._epochs = {
            epoch: read_epoch(by_epoch[epoch], me=means.signer.did)
            for epoch in sorted(by_epoch)
        }
        return found

    def _drop(self, number: int) -> None:
        epoch = self._epochs.pop(number)
        self._dropped |= {f"{number}/{name}" for name in (KEYS, OWN, *epoch.inbound)}
