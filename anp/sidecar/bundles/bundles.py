"""Exports and imports bundles: one agreed protocol as a file (docs/bundles.md).

What comes in is tried like any other half, and stored as imported, whoever the bundle
says wrote it: so it needs the full isolation, and rules are not believed by their name.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

from anp.errors import CallError, ErrorKind
from anp.sidecar.agreement.offline import likely_arguments, need_of, retry_cases
from anp.sidecar.agreement.outcomes import TESTS_KEY
from anp.sidecar.bundles.export import CLAIMS, BundleExport, active_agreements
from anp.sidecar.bundles.format import (
    Bundle,
    BundledCapability,
    BundledHalf,
    read_bundle,
)
from anp.sidecar.halves.workshop import Workshop
from anp.sidecar.offer.exposure import Exposure
from cache.errors import RecordError
from cache.parts.agreements import Imported, ImportPart
from cache.records.records import AgreementRecord, DocumentRecord, HalfRecord
from cache.records.records import AgreementRole as StoredRole
from cache.store import Store
from negotiation.document.reader import read_document
from negotiation.errors import HalfError
from negotiation.mind import Demand, HalfSource, Offer, Side
from negotiation.need import Need, Role, need_key, schema_hash
from negotiation.strict_json import canonical_json

logger = logging.getLogger(__name__)

Samples = Literal["full", "partial", "none"]

LEAST_FIRST: Final[tuple[Samples, ...]] = ("none", "partial", "full")
"Shares of the schemas that could be sampled, the least first."

IMPORTED: Final = "imported"
"The origin of every imported half, whatever its bundle says."

MAX_CLAIMED: Final = 64 * 1024
"Largest `tests` of a bundle that are kept for the owner, in bytes of JSON."

MAX_SHOWN: Final = 3
"Findings about a half that an error names."


@dataclass(frozen=True, slots=True)
class _Tried:
    """An imported half that passed its trial."""

    samples: Samples
    "Share of the schemas that could be sampled."

    tests: dict[str, Any]
    "Record of the tests, for the agreements."


class Bundles:
    """Writes agreed protocols into bundles, and takes bundles in."""

    def __init__(
        self,
        *,
        store: Store,
        workshop: Workshop,
        exposure: Exposure,
        own_did: str,
        in_use: Callable[[Sequence[Imported]], Awaitable[None]],
    ) -> None:
        """Make the part that exports and imports.

        Args:
            in_use: Is told what was stored, to end the channels on what it replaced.
        """
        self._store = store
        self._workshop = workshop
        self._exposure = exposure
        self._own_did = own_did
        self._in_use = in_use
        self._export = BundleExport(store=store, exposure=exposure, own_did=own_did)

    # Out.

    async def export(
        self,
        prefix: str,
        *,
        role: Role | None = None,
        peer_did: str | None = None,
        with_did: bool = False,
        with_tests: bool = True,
    ) -> bytes:
        """Return the bundle of one document; the same bytes while nothing changes.

        Args:
            prefix: The document's hash or its beginning.
            role: Only that half; None is every half held here.
            peer_did: The peer whose revision is meant, in its canonical form.
            with_did: Say in the bundle who exported it.
            with_tests: Put in the tests, with the data they were made of.

        Raises:
            CallError: `usage`, there is no such half, or several revisions of it.
            BundleError: It would be too large.
            HashPrefixError: None or several hashes begin with `prefix`.
        """
        return await asyncio.to_thread(
            self._export.export,
            prefix,
            role=role,
            peer_did=peer_did,
            with_did=with_did,
            with_tests=with_tests,
        )

    # In.

    async def take_in(
        self, data: bytes, *, role: Role | None = None, peer_did: str | None = None
    ) -> tuple[Imported, ...]:
        """Check the bundle in `data`, try its halves, store them and put them to use.

        All of it or nothing. A channel on a revision that was replaced closes when its
        calls in flight have ended.

        Args:
            role: Only that half; None is every half in the bundle.
            peer_did: For whom, in its canonical form; None is everybody.

        Raises:
            BundleError: It is no bundle, or a byte of it is off.
            CallError: It cannot be used here; the reason says what is missing.
        """
        bundle = await asyncio.to_thread(read_bundle, data)
        halves = [half for half in bundle.halves if role in {None, half.role}]
        if not halves:
            raise CallError(ErrorKind.USAGE, f"the bundle has no code for the {role}")
        if await asyncio.to_thread(self._store.is_revoked, bundle.hash):
            raise CallError(
                ErrorKind.POLICY, f"document {bundle.hash[:12]} was revoked by you"
            )
        now = time.time()
        made = [
            await asyncio.to_thread(self._agreement, bundle, half, peer_did, now)
            for half in halves
        ]
        for half in halves:
            self._check_capabilities(half, alone=len(halves) == 1)
        parts = []
        for half, agreement in zip(halves, made, strict=True):
            tried = await self._try(bundle, half, peer_did, agreement)
            part = self._part(bundle, half, agreement, tried, peer_did, now)
            # The hash of the bundle, for the owner who asks for the source.
            name = hashlib.sha256(data).hexdigest()
            parts.append(replace(part, half=replace(part.half, bundle=name)))
        try:
            imported = await asyncio.to_thread(
                self._store.save_import, DocumentRecord.of(bundle.text), parts
            )
        except RecordError as exc:
            raise CallError(ErrorKind.POLICY, f"not imported: {exc}") from exc
        for one in imported:
            logger.info(
                "code imported hash=%s role=%s revision=%d agreements=%d",
                one.half.hash[:12],
                one.half.role,
                one.half.revision,
                len(one.agreements),
            )
        await self._in_use(imported)
        return imported

    def _agreement(
        self, bundle: Bundle, half: BundledHalf, peer_did: str | None, now: float
    ) -> AgreementRecord | None:
        """Return the agreement to make for a peer, unless there is one.

        Raises:
            CallError: `usage`, a requester half would serve nobody.
        """
        need: Need | None = None
        if half.role is Role.REQUESTER:
            need = bundle.need
            known = active_agreements(self._store, bundle.hash, half.role, peer_did)
            if not known and peer_did is None:
                raise CallError(
                    ErrorKind.USAGE,
                    "no agreement here is about this protocol text; name with "
                    "--peer the peer that is called with the requester's code",
                )
            if not known and need is None:
                raise CallError(
                    ErrorKind.USAGE,
                    "the bundle names no need, so no call would use its requester's "
                    "code; export it from a daemon that calls with it",
                )
        if peer_did is None or (half.role is Role.REQUESTER and need is None):
            return None
        return AgreementRecord.from_json(
            {
                "own_did": self._own_did,
                "peer_did": peer_did,
                "role": half.role.value,
                "need_key": None if need is None else need_key(need),
                "hash": bundle.hash,
                "revision": 0,
                "need": None if need is None else asdict(need),
                "samples": "none",
                "tests": {},
                "negotiation_id": None,
                "created": now,
            }
        )

    def _check_capabilities(self, half: BundledHalf, *, alone: bool) -> None:
        """Refuse a half whose capabilities are not the very same ones here.

        Raises:
            CallError: `policy`, naming each and what is the matter with it.
        """
        problems = self._unfit(half.capabilities)
        if problems:
            hint = (
                "" if alone else "; --role requester imports only the requester's code"
            )
            raise CallError(
                ErrorKind.POLICY,
                f"the provider's code cannot be used here: {'; '.join(problems)}{hint}",
            )

    def _unfit(self, wanted: Sequence[BundledCapability]) -> list[str]:
        attached = {one.name: (one, exposed) for one, exposed in self._exposure.all()}
        healthy = {one.name for one in self._exposure.offered_to_some()}
        problems = []
        for one in wanted:
            here, exposed = attached.get(one.name, (None, False))
            if here is None:
                problems.append(f"{one.name} is not attached")
            elif not exposed and one.name not in healthy:
                problems.append(f"{one.name} is not exposed")
            elif schema_hash(here) != one.schema_hash:
                problems.append(f"{one.name} has other schemas here than in the bundle")
            elif one.name not in healthy:
                problems.append(f"{one.name} is not healthy")
        return problems

    async def _try(
        self,
        bundle: Bundle,
        half: BundledHalf,
        peer_did: str | None,
        agreement: AgreementRecord | None,
    ) -> _Tried:
        """Try a half as every half is tried, then with the bundle's test cases.

        Raises:
            CallError: `generated_code`, it may not be used; the first findings say why.
        """
        source = HalfSource(
            half.source, IMPORTED, tuple(one.name for one in half.capabilities)
        )
        sides = await self._sides(bundle, half, peer_did, agreement)
        problems: list[str] = []
        samples: list[str] = []
        cases: dict[str, Any] | None = None
        try:
            name = f"import:{secrets.token_hex(4)}"
            async with self._workshop.trial(source, bundle.text, name=name) as trial:
                for side in sides:
                    findings = await trial.check(side)
                    problems += findings.problems
                    samples.append(findings.samples)
                if not problems:
                    retried = await retry_cases(half.tests, sides[0], trial)
                    problems += retried.problems
                    cases = retried.kept
        except HalfError as exc:
            problems.append(str(exc))
        if problems:
            rest = len(problems) - MAX_SHOWN
            more = f" (and {rest} more)" if rest > 0 else ""
            shown = "; ".join(problems[:MAX_SHOWN])[:1000]
            raise CallError(
                ErrorKind.GENERATED_CODE,
                f"the {half.role}'s code failed its checks: {shown}{more}",
            )
        tests: dict[str, Any] = {"acceptance": "passed"}
        if cases is not None:
            tests[TESTS_KEY] = {**cases, "at": time.time()}
        claimed: dict[str, Any] = {
            "origin": half.origin,
            "created": bundle.created,
            "did": bundle.did,
        }
        if len(canonical_json(dict(half.tests))) <= MAX_CLAIMED:
            claimed["tests"] = dict(half.tests)
        least = next(one for one in LEAST_FIRST if one in samples)
        return _Tried(least, {**tests, CLAIMS: claimed})

    async def _sides(
        self,
        bundle: Bundle,
        half: BundledHalf,
        peer_did: str | None,
        agreement: AgreementRecord | None,
    ) -> list[Side]:
        """Return the sides that the half has to serve, the new agreement's first."""
        if half.role is Role.PROVIDER:
            return [Offer(self._exposure.offered_to_some())]
        document = read_document(bundle.text)
        known = await asyncio.to_thread(
            active_agreements, self._store, bundle.hash, half.role, peer_did
        )
        served = [*([agreement] if agreement is not None else []), *known]
        needs = {one.need_key: need_of(one, document) for one in served}
        sides: list[Side] = []
        for need in needs.values():
            await self._check_need(need)
            arguments = await likely_arguments(
                document, need, half.tests, self._workshop.validator
            )
            sides.append(Demand(need, arguments))
        return sides

    async def _check_need(self, need: Need) -> None:
        for name, schema in (
            ("input", need.input_schema),
            ("output", need.output_schema),
        ):
            if schema is not None:
                findings = await self._workshop.validator.check_schema(schema)
                if findings:
                    raise CallError(
                        ErrorKind.USAGE,
                        f"the bundle's need: its {name} schema: {'; '.join(findings)}",
                    )

    def _part(
        self,
        bundle: Bundle,
        half: BundledHalf,
        agreement: AgreementRecord | None,
        tried: _Tried,
        peer_did: str | None,
        now: float,
    ) -> ImportPart:
        record = HalfRecord(
            hash=bundle.hash,
            role=StoredRole(half.role.value),
            revision=0,
            source=half.source,
            origin=IMPORTED,
            capabilities={one.name: one.schema_hash for one in half.capabilities},
            created=now,
        )
        return ImportPart(record, tried.samples, tried.tests, peer_did, agreement)
