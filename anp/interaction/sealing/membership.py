"""The chain of entries in which admins change the members of a sealed group.

An entry says how the members change, so that who is a member follows from the chain and
from nothing that the hub says. Each entry is signed by an admin and names the hash of
the entry before it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from anp.interaction.sealing.encoding import (
    HASH_SIZE,
    SIGNATURE_SIZE,
    DidSigner,
    DidVerifier,
    base64_text,
    bytes_field,
    invalid,
    signed_bytes,
    text_field,
    whole_field,
)
from anp.interaction.sealing.errors import SealingError, SealingFault

MAX_MEMBERS: Final = 1024
"Most members of a sealed group."

MAX_ENTRIES: Final = 65_536
"Most changes of members in the life of a group."

ENTRY_LABEL: Final = "anpd sealing entry 1"
ENTRY_FIELDS: Final = frozenset(
    {"group", "epoch", "changes", "previous", "by", "key", "at", "signature"}
)


class MemberRank(StrEnum):
    """The rights of a member."""

    OWNER = "owner"
    "Founded the group; always a member."

    ADMIN = "admin"
    "May add and remove plain members."

    MEMBER = "member"


class ChangeKind(StrEnum):
    """The ways in which the members change."""

    ADD = "add"
    REMOVE = "remove"

    RANK = "rank"
    "A member becomes an admin or ceases to be one."


@dataclass(frozen=True, slots=True)
class MemberChange:
    """One change of one member."""

    kind: ChangeKind
    did: str
    rank: MemberRank = MemberRank.MEMBER
    "The rank from now on; of no meaning where a member is removed."

    @classmethod
    def read(cls, value: Any) -> MemberChange:
        """Read the JSON of `json`."""
        if not isinstance(value, Mapping) or value.keys() != {"kind", "did", "rank"}:
            raise invalid("a change of members is no object of kind, did and rank")
        try:
            kind = ChangeKind(text_field(value, "kind"))
            rank = MemberRank(text_field(value, "rank"))
        except ValueError:
            raise invalid("a change of members has an unknown kind or rank") from None
        return cls(kind, text_field(value, "did"), rank)

    def json(self) -> dict[str, str]:
        """Return the change as JSON."""
        return {"kind": self.kind, "did": self.did, "rank": self.rank}


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipEntry:
    """One signed change of members, which begins an epoch."""

    group: str
    epoch: int
    "1 for the entry that founds the group."

    changes: tuple[MemberChange, ...]
    previous: bytes
    "Hash of the entry before; 32 zero bytes in the first."

    by: str
    "DID of the admin."

    key: str
    "The key that signed it; see `DidSigner`."

    at: datetime
    "The admin's time, with its zone; it is shown and decides nothing."

    signature: bytes = b""

    @classmethod
    def read(cls, value: Any) -> MembershipEntry:
        """Read the JSON of `json`; SealingError INVALID if it is none."""
        # An unknown field would be in what was signed and not in what is kept.
        if not isinstance(value, Mapping) or value.keys() != ENTRY_FIELDS:
            raise invalid("an entry of the membership lacks a field or has another")
        changes = value["changes"]
        if not isinstance(changes, list) or not 0 < len(changes) <= MAX_MEMBERS:
            raise invalid(f"an entry has not 1 to {MAX_MEMBERS} changes")
        try:
            at = datetime.fromisoformat(text_field(value, "at"))
        except ValueError:
            raise invalid("the time of an entry is none") from None
        if at.tzinfo is None or at.isoformat() != value["at"]:
            raise invalid("the time of an entry is not written as its signer has to")
        return cls(
            group=text_field(value, "group"),
            epoch=whole_field(value, "epoch", least=1),
            changes=tuple(MemberChange.read(one) for one in changes),
            previous=bytes_field(value, "previous", HASH_SIZE),
            by=text_field(value, "by"),
            key=text_field(value, "key"),
            at=at,
            signature=bytes_field(value, "signature", SIGNATURE_SIZE),
        )

    def json(self) -> dict[str, Any]:
        """Return the entry as JSON."""
        return {**self._unsigned(), "signature": base64_text(self.signature)}

    def signed(self) -> bytes:
        """Return the bytes that the admin signs."""
        return signed_bytes(ENTRY_LABEL, self._unsigned())

    @property
    def hash(self) -> bytes:
        """SHA-256 of what is signed; an ECDSA signature itself has several forms."""
        return hashlib.sha256(self.signed()).digest()

    def _unsigned(self) -> dict[str, Any]:
        return {
            "group": self.group,
            "epoch": self.epoch,
            "changes": [one.json() for one in self.changes],
            "previous": base64_text(self.previous),
            "by": self.by,
            "key": self.key,
            "at": self.at.isoformat(),
        }


class MembershipChain:
    """All entries of one group, and the members that follow from them."""

    def __init__(self, group: str, owner: str, *, verifies: DidVerifier) -> None:
        """Begin without entries; `owner` is who has to have founded the group."""
        self._group = group
        self._owner = owner
        self.verifies = verifies
        self.entries: list[MembershipEntry] = []
        self._hashes: list[bytes] = []
        self.members: dict[str, MemberRank] = {}
        "Rank of each member by its DID."

    @property
    def group(self) -> str:
        """Id of the group."""
        return self._group

    @property
    def owner(self) -> str:
        """DID of the member that founded the group."""
        return self._owner

    @property
    def epoch(self) -> int:
        """Number of the newest entry; 0 while there is none."""
        return len(self.entries)

    @property
    def hash(self) -> bytes:
        """Hash of the newest entry; 32 zero bytes while there is none."""
        return self._hashes[-1] if self._hashes else bytes(HASH_SIZE)

    def hash_of(self, epoch: int) -> bytes:
        """Return the hash of a known entry by its epoch."""
        return self._hashes[epoch - 1]

    def propose(
        self, changes: Sequence[MemberChange], *, at: datetime, signer: DidSigner
    ) -> MembershipEntry:
        """Return a signed entry that follows the newest one, and do not take it yet.

        Raises:
            SealingError: NOT_ALLOWED or INVALID, as when it would be taken.
        """
        entry = MembershipEntry(
            group=self._group,
            epoch=self.epoch + 1,
            changes=tuple(changes),
            previous=self.hash,
            by=signer.did,
            key=signer.key,
            at=at,
        )
        self._changed(entry)
        return replace(entry, signature=signer.sign(entry.signed()))

    def take(self, entry: MembershipEntry) -> None:
        """Take the next entry.

        Raises:
            SealingError: REPEATED for one that is known; TAKEN for another one in its
                place; GAP, FORGED, FORK, NOT_ALLOWED or INVALID.
        """
        if entry.group != self._group:
            raise invalid("the entry is of another group")
        if entry.epoch <= self.epoch:
            if self.hash_of(entry.epoch) == entry.hash:
                raise SealingError(SealingFault.REPEATED, "the entry is known")
            self._check_signature(entry)
            if entry.previous == self.entries[entry.epoch - 1].previous:
                raise SealingError(
                    SealingFault.TAKEN, f"there is another entry of epoch {entry.epoch}"
                )
            raise SealingError(
                SealingFault.FORK, f"entry {entry.epoch} follows another history"
            )
        if entry.epoch > self.epoch + 1:
            raise SealingError(
                SealingFault.GAP,
                f"entry {entry.epoch} came and {self.epoch + 1} is missing",
            )
        self._check_signature(entry)
        if entry.previous != self.hash:
            raise SealingError(
                SealingFault.FORK, f"entry {entry.epoch} follows another history"
            )
        members = self._changed(entry)
        self.entries.append(entry)
        self._hashes.append(entry.hash)
        self.members = members

    def _check_signature(self, entry: MembershipEntry) -> None:
        signed = entry.signed()
        if not self.verifies(entry.by, entry.key, entry.signature, signed):
            raise SealingError(
                SealingFault.FORGED, f"entry {entry.epoch} is not signed by {entry.by}"
            )

    def _changed(self, entry: MembershipEntry) -> dict[str, MemberRank]:
        """Return the members after an entry; SealingError if it may not be."""
        if self.epoch >= MAX_ENTRIES:
            raise invalid(f"a group changes at most {MAX_ENTRIES} times")
        members = dict(self.members)
        if not members:
            founding = MemberChange(ChangeKind.ADD, self._owner, MemberRank.OWNER)
            if entry.by != self._owner or entry.changes[0] != founding:
                raise _not_allowed(f"{entry.by} may not found a group of {self._owner}")
            members[self._owner] = MemberRank.OWNER
            changes = entry.changes[1:]
        else:
            changes = entry.changes
        for change in changes:
            _change(members, change, by=members.get(entry.by))
        if len(members) > MAX_MEMBERS:
            raise invalid(f"a sealed group has at most {MAX_MEMBERS} members")
        return members


def _change(
    members: dict[str, MemberRank], change: MemberChange, *, by: MemberRank | None
) -> None:
    if by not in {MemberRank.OWNER, MemberRank.ADMIN}:
        raise _not_allowed("only owner and admins change the members")
    present = members.get(change.did)
    # An admin must not make others that could undo its own removal.
    ranks = {present, change.rank} - {None, MemberRank.MEMBER}
    if MemberRank.OWNER in ranks or (ranks and by is not MemberRank.OWNER):
        raise _not_allowed("admins are changed by the owner, the owner by nobody")
    match change.kind, present:
        case (ChangeKind.ADD, None):
            members[change.did] = change.rank
        case (ChangeKind.REMOVE, MemberRank()):
            del members[change.did]
        case (ChangeKind.RANK, MemberRank()) if present is not change.rank:
            members[change.did] = change.rank
        case _:
            raise invalid(f"{change.kind} changes nothing about {change.did}")


def _not_allowed(text: str) -> SealingError:
    return SealingError(SealingFault.NOT_ALLOWED, text)
