"""The part of the store for the owner's library: pages, pruning, revocations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from cache.parts.agreements import AgreementStore
from cache.parts.shelf import key_of, read_transaction, write_transaction
from cache.records.records import (
    AgreementRecord,
    AgreementRole,
    AgreementState,
    ConfirmedRecord,
    HalfRecord,
    RevocationRecord,
    WithdrawnRecord,
    hash_text,
)
from cache.rows import Row, Rows

MAX_LOOKED = 2000
"Rows that one page reads, so that other callers do not wait long for the database."

AREAS = ("agreement/", "half/")
"Areas of the store that a page reads, in the order of their keys."

BATCH = 200
"Agreements dropped in one transaction."

HALF_BATCH = 2000
"Documents whose halves are dropped in one transaction; it reads all agreement keys."

_Revision = tuple[str, AgreementRole, int]


@dataclass(frozen=True, slots=True)
class Page:
    """A page of agreements and unbound halves, in the order of their keys."""

    agreements: tuple[AgreementRecord, ...]

    unbound: tuple[HalfRecord, ...]
    "Provider halves of documents on which there is no agreement here."

    after: str | None
    "The place where the next page begins; None on the last page."


@dataclass(frozen=True, slots=True)
class Removed:
    """A record that was dropped, or would be in a dry run."""

    record: AgreementRecord | HalfRecord | None
    "The record; None for a document's text."

    hash: str
    "Hash of the document."

    why: str
    "The reason in words."

    size: int
    "Bytes that the record takes."


Verdict = Callable[[AgreementRecord], str | None]
"Returns the reason to drop an agreement, or None to keep it."

HalfVerdict = Callable[[HalfRecord, bool], str | None]
"Returns the reason to drop a half, or None; told if a kept agreement uses it."


@dataclass(frozen=True, slots=True)
class Ruled:
    """The result of revoking a document, or of ending a revocation."""

    revocations: tuple[RevocationRecord, ...]
    "The revocations made or ended; empty when there was nothing to do."

    records: int
    "Number of halves and agreements whose state changed."


class LibraryStore(AgreementStore):
    """Lists agreements in pages, prunes them, and revokes documents durably.

    A revocation is for one peer or all. It marks halves and agreements as well, so that
    look-ups for active ones skip them; its record still counts when they are pruned.
    """

    @read_transaction
    def page(
        self,
        cache: Rows,
        *,
        after: str = "",
        limit: int = 100,
        wanted: Callable[[AgreementRecord], bool] = lambda _: True,
    ) -> Page:
        """Return the next agreements, and after all of them the unbound halves.

        It reads at most `MAX_LOOKED` rows, so a page may have fewer than `limit`
        entries, or none, without being the last.

        Args:
            after: `Page.after` of the previous page.
            wanted: Returns true for an agreement that should be on the page.
        """
        agreements: list[AgreementRecord] = []
        unbound: list[HalfRecord] = []
        left, last = MAX_LOOKED, after
        for area in AREAS:
            if last and last > f"{area}\U0010ffff":
                continue
            begin = last if last.startswith(area) else ""
            # Reads at most as many rows as the page has room for.
            while rows := cache.rows(area, limit=min(left, limit), after=begin):
                for row in rows:
                    last = begin = row.key
                    if area == "agreement/":
                        one = self._shelf.open(AgreementRecord, row)
                        if one is not None:
                            agreements += [one] if wanted(one) else []
                    elif f"/{AgreementRole.PROVIDER}/" in row.key:
                        half = self._shelf.open(HalfRecord, row)
                        if half is not None and self._is_unbound(cache, half):
                            unbound.append(half)
                    if len(agreements) + len(unbound) >= limit:
                        return Page(tuple(agreements), tuple(unbound), last)
                left -= len(rows)
                if left <= 0:
                    return Page(tuple(agreements), tuple(unbound), last)
        return Page(tuple(agreements), tuple(unbound), None)

    @write_transaction
    def note_run(
        self, cache: Rows, agreement: AgreementRecord, run: Mapping[str, Any]
    ) -> AgreementRecord:
        """Store with an agreement the result of running its test cases again."""
        stored = self._shelf.get(cache, AgreementRecord, key_of(agreement))
        changed = replace(stored or agreement, last_run=dict(run))
        if stored is not None:
            self._shelf.put(cache, changed)
        return changed

    # Revocations.

    @write_transaction
    def revoke(
        self,
        cache: Rows,
        hash_: str,
        *,
        peer_did: str | None = None,
        reason: str = "",
        at: float,
    ) -> Ruled:
        """Revoke a document, even if nothing of it is stored.

        Args:
            peer_did: Canonical DID of the only peer concerned; None concerns all.
            at: Seconds since 1970.
        """
        hash_ = hash_.lower()
        keys = [key for key, _ in cache.sizes(f"revocation/{hash_}/")]
        made = RevocationRecord(hash_, peer_did, at, reason)
        if key_of(made) in keys or f"revocation/{hash_}/-" in keys:
            return Ruled((), 0)
        kept: dict[str, AgreementState] = {}
        if peer_did is None:
            # A revocation for all peers replaces those for single peers.
            for one in self._revocations(cache, hash_):
                kept.update(one.kept)
            for key in keys:
                cache.delete(key)
        changed = 0
        for record in self._ruled(cache, hash_, peer_did):
            if record.state is AgreementState.REVOKED:
                continue
            if record.state is not AgreementState.ACTIVE:
                kept[key_of(record)] = record.state
            self._shelf.put(cache, replace(record, state=AgreementState.REVOKED))
            changed += 1
        made = replace(made, kept=kept)
        self._shelf.put(cache, made)
        return Ruled((made,), changed)

    @write_transaction
    def give_back(
        self, cache: Rows, hash_: str, *, peer_did: str | None = None
    ) -> Ruled:
        """End a document's revocations and restore the states of its records.

        Args:
            peer_did: Ends only the revocation for this peer; None ends all of them.
        """
        hash_ = hash_.lower()
        prefix = f"revocation/{hash_}/{peer_did or ''}"
        keys = [key for key, _ in cache.sizes(prefix)]
        ended = [
            one
            for one in self._revocations(cache, hash_)
            if key_of(one) in keys and peer_did in {None, one.peer_did}
        ]
        kept: dict[str, AgreementState] = {}
        for one in ended:
            kept.update(one.kept)
        # A damaged revocation has lost the old states: records then become stale,
        # so that nothing comes into use by itself.
        default = (
            AgreementState.ACTIVE if len(ended) == len(keys) else AgreementState.STALE
        )
        for key in keys:
            cache.delete(key)
        changed = 0
        for record in self._ruled(cache, hash_, peer_did) if keys else ():
            if record.state is not AgreementState.REVOKED:
                continue
            before = kept.get(key_of(record), default)
            self._shelf.put(cache, replace(record, state=before))
            changed += 1
        return Ruled(tuple(ended), changed)

    def revocations(self, hash_: str | None = None) -> list[RevocationRecord]:
        """Return the revocations of a document, or all of them, newest first."""
        found = self._database.read(
            lambda cache: self._revocations(cache, (hash_ or "").lower())
        )
        return sorted(found, key=lambda one: (one.at, one.hash), reverse=True)

    # Access to capabilities.

    @write_transaction
    def withdraw(self, cache: Rows, records: Iterable[WithdrawnRecord]) -> None:
        """Withdraw capabilities; a withdrawal for all peers has no exceptions left."""
        for record in records:
            before: list[str] = []
            for one in self._withdrawals(cache):
                if (one.role, one.capability) != (record.role, record.capability):
                    continue
                if one.peer_did == record.peer_did:
                    before += one.hashes
                elif record.peer_did is None and one.is_open:
                    cache.delete(key_of(one))
            hashes = tuple(dict.fromkeys((*before, *record.hashes)))
            self._shelf.put(cache, replace(record, hashes=hashes))

    @write_transaction
    def readmit(
        self,
        cache: Rows,
        wanted: Callable[[WithdrawnRecord], bool],
        peer_did: str | None = None,
    ) -> list[WithdrawnRecord]:
        """End withdrawals, and return those that ended.

        Args:
            wanted: Returns true for those that are meant.
            peer_did: Only for this peer: a withdrawal for all gets an exception, and
                holds for the others.
        """
        ended: list[WithdrawnRecord] = []
        # A peer's own come first: an exception stands in their place.
        for one in reversed(self._withdrawals(cache)):
            if not wanted(one) or (peer_did and one.peer_did not in {None, peer_did}):
                continue
            ended += [] if one.is_open else [one]
            if peer_did in {None, one.peer_did}:
                cache.delete(key_of(one))
            else:
                self._shelf.put(cache, replace(one, peer_did=peer_did, is_open=True))
        return ended

    @read_transaction
    def withdrawn(
        self, cache: Rows, role: AgreementRole, peer_did: str, names: Iterable[str]
    ) -> list[str]:
        """Return those of the capabilities that are withdrawn from a peer.

        A damaged record counts as a withdrawal.
        """
        found = []
        for name in names:
            own, general = (
                f"withdrawn/{role}/{whose}/{hash_text(name)}"
                for whose in (peer_did, "-")
            )
            if own in cache or general in cache:
                word = self._shelf.get(cache, WithdrawnRecord, own)
                if word is None or not word.is_open:
                    found.append(name)
        return found

    def withdrawals(self) -> list[WithdrawnRecord]:
        """Return every withdrawal and every exception from one."""
        return self._database.read(self._withdrawals)

    @write_transaction
    def confirm(self, cache: Rows, record: ConfirmedRecord) -> None:
        """Let one need of a peer have the side effects of a capability."""
        self._shelf.put(cache, record)

    def confirmed(self, peer_did: str, need: str) -> frozenset[str]:
        """Return the capabilities that the owner confirmed for a need of a peer."""
        found = self._scan(ConfirmedRecord, f"confirmed/{peer_did}/{need}/")
        return frozenset(one.capability for one in found)

    # Pruning.

    def prune(
        self,
        goes: Verdict,
        half_goes: HalfVerdict,
        *,
        keep: frozenset[str],
        dry_run: bool,
    ) -> list[Removed]:
        """Drop agreements, then halves that nobody uses, then texts without either.

        Each record is judged again in the transaction that drops it, so what came into
        use meanwhile stays. Damaged rows stay too. Revocations and counts stay.

        Args:
            keep: Hashes of documents of which nothing is dropped.
            dry_run: Drop nothing, and return what would be.
        """
        removed: list[Removed] = []
        gone: set[str] = set()
        used: set[_Revision] = set()
        after: str | None = ""
        while after is not None:
            page = self.page(after=after, limit=MAX_LOOKED)
            found = [one for one in page.agreements if one.hash not in keep]
            removed += self._prune_agreements(found, goes, gone, dry_run=dry_run)
            used.update(
                (one.hash, one.role, one.revision)
                for one in page.agreements
                if key_of(one) not in gone
            )
            after = page.after
        hashes = self._likely(half_goes, used) - keep
        removed += self._prune_halves(hashes, half_goes, gone, dry_run=dry_run)
        return removed

    def _prune_agreements(
        self,
        found: Sequence[AgreementRecord],
        goes: Verdict,
        gone: set[str],
        *,
        dry_run: bool,
    ) -> list[Removed]:
        def work(cache: Rows, names: Sequence[str]) -> list[Removed]:
            dropped = []
            for key in names:
                record = self._shelf.get(cache, AgreementRecord, key)
                why = None if record is None else goes(record)
                if record is not None and why is not None:
                    size = _drop(cache, key, dry_run=dry_run)
                    dropped.append(Removed(record, record.hash, why, size))
            return dropped

        likely = [key_of(one) for one in found if goes(one) is not None]
        removed = self._in_batches(work, likely, BATCH, dry_run=dry_run)
        gone.update(key_of(one.record) for one in removed if one.record is not None)
        return removed

    def _prune_halves(
        self, hashes: set[str], half_goes: HalfVerdict, gone: set[str], *, dry_run: bool
    ) -> list[Removed]:
        def work(cache: Rows, names: Sequence[str]) -> list[Removed]:
            used = self._used_revisions(cache, frozenset(names), gone)
            dropped = []
            for hash_ in names:
                stays = False
                sizes = dict(cache.sizes(f"half/{hash_}/"))
                for half in self._halves(cache, hash_):
                    size = sizes.pop(key_of(half))
                    in_use = (hash_, half.role, half.revision) in used
                    why = half_goes(half, in_use)
                    if why is None:
                        stays = True
                        continue
                    dropped.append(Removed(half, hash_, why, size))
                    _drop(cache, key_of(half), dry_run=dry_run)
                # What is left in `sizes` is damaged, and stays with its text.
                bound = any(hash_ == one for one, _, _ in used)
                if stays or sizes or bound:
                    continue
                if f"document/{hash_}" in cache:
                    size = _drop(cache, f"document/{hash_}", dry_run=dry_run)
                    dropped.append(Removed(None, hash_, "nothing uses it", size))
            return dropped

        return self._in_batches(work, sorted(hashes), HALF_BATCH, dry_run=dry_run)

    def _in_batches(
        self,
        work: Callable[..., list[Removed]],
        names: Sequence[str],
        size: int,
        *,
        dry_run: bool,
    ) -> list[Removed]:
        """Run `work` on each `size` of the names, in a transaction for each."""
        run = self._database.read if dry_run else self._database.write
        removed: list[Removed] = []
        for start in range(0, len(names), size):
            removed += run(partial(work, names=names[start : start + size]))
        return removed

    def _likely(self, half_goes: HalfVerdict, used: set[_Revision]) -> set[str]:
        """Return the documents of which a half or the text seems to be unused."""
        likely: set[str] = set()
        held: set[str] = set()
        after = ""
        while True:
            rows = self._database.read(partial(_half_rows, after=after))
            for row in rows:
                half = self._shelf.open(HalfRecord, row)
                held.add(row.key.split("/")[1])
                if half is None:
                    continue
                is_used = (half.hash, half.role, half.revision) in used
                if half_goes(half, is_used) is not None:
                    likely.add(half.hash)
            if len(rows) < MAX_LOOKED:
                break
            after = rows[-1].key
        texts = self._database.read(lambda cache: cache.sizes("document/"))
        return likely | ({key.split("/")[1] for key, _ in texts} - held)

    # Internal; these run in the database's thread.

    def _revocations(self, cache: Rows, hash_: str) -> list[RevocationRecord]:
        prefix = f"revocation/{hash_}/" if hash_ else "revocation/"
        return self._shelf.scan(cache, RevocationRecord, prefix)

    def _withdrawals(self, cache: Rows) -> list[WithdrawnRecord]:
        return self._shelf.scan(cache, WithdrawnRecord, "withdrawn/")

    def _ruled(
        self, cache: Rows, hash_: str, peer_did: str | None
    ) -> list[HalfRecord | AgreementRecord]:
        agreements = [
            one
            for one in self._agreements_of(cache, hash_)
            if peer_did in {None, one.peer_did}
        ]
        # A half may serve other peers too, so only a general revocation marks it.
        halves = self._halves(cache, hash_) if peer_did is None else []
        return [*halves, *agreements]

    def _is_unbound(self, cache: Rows, half: HalfRecord) -> bool:
        if half.state not in {AgreementState.ACTIVE, AgreementState.REVOKED}:
            return False
        return not cache.rows(f"agreement/provider/{half.hash}/", limit=1)

    def _used_revisions(
        self, cache: Rows, hashes: frozenset[str], gone: set[str]
    ) -> set[_Revision]:
        """Return the revisions that agreements use which are not in `gone`.

        A damaged agreement counts as one that uses every revision.
        """
        keys = [
            key
            for area in ("agreement/requester/", "agreement/provider/")
            for key, _ in cache.sizes(area)
            if key not in gone and _hash_in(key) in hashes
        ]
        used: set[_Revision] = set()
        for key in keys:
            record = self._shelf.get(cache, AgreementRecord, key)
            if record is not None:
                used.add((record.hash, record.role, record.revision))
                continue
            for half in self._halves(cache, _hash_in(key)):
                used.add((half.hash, half.role, half.revision))
        return used


def _drop(cache: Rows, key: str, *, dry_run: bool) -> int:
    """Delete a row, unless this is a dry run; return its size in bytes."""
    size = dict(cache.sizes(key))[key]
    if not dry_run:
        cache.delete(key)
    return size


def _half_rows(cache: Rows, *, after: str) -> list[Row]:
    return cache.rows("half/", limit=MAX_LOOKED, after=after)


def _hash_in(key: str) -> str:
    """Return the document's hash in the key of an agreement."""
    parts = key.split("/")
    return parts[2] if parts[1] == AgreementRole.PROVIDER else parts[-1]
