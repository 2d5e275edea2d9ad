"""Writes an agreed protocol into a bundle (docs/bundles.md)."""

from __future__ import annotations

from anp.errors import CallError, ErrorKind
from anp.sidecar.bundles.format import (
    Bundle,
    BundledCapability,
    BundledHalf,
    render_bundle,
)
from anp.sidecar.offer.exposure import Exposure
from cache.records.records import AgreementRecord, AgreementState, HalfRecord
from cache.store import Store
from negotiation.need import Need, Role, schema_hash

CLAIMS = "imported"
"Key in an agreement's `tests` for the statements of the bundle it came from."


def active_agreements(
    store: Store, digest: str, role: Role, peer_did: str | None
) -> list[AgreementRecord]:
    """Return active agreements on a document, the newest first; may block.

    Args:
        peer_did: Only those with this peer; None is every peer.
    """
    return [
        one
        for one in store.agreements_of(digest)
        if one.role.value == role.value
        and one.state is AgreementState.ACTIVE
        and peer_did in {None, one.peer_did}
    ]


class BundleExport:
    """Finds the halves in use and their schemas; its methods may block."""

    def __init__(self, *, store: Store, exposure: Exposure, own_did: str) -> None:
        self._store = store
        self._exposure = exposure
        self._own_did = own_did

    def export(
        self,
        prefix: str,
        *,
        role: Role | None,
        peer_did: str | None,
        with_did: bool,
        with_tests: bool,
    ) -> bytes:
        """Return the bundle of one document; see `Bundles.export`."""
        digest = self._store.find_hash(prefix)
        document = self._store.document(digest)
        if document is None:
            raise CallError(ErrorKind.USAGE, f"the text of {digest[:12]} was not kept")
        need: Need | None = None
        halves: list[BundledHalf] = []
        created = 0.0
        for one in [role] if role is not None else list(Role):
            found = self._in_use(digest, one, peer_did)
            if found is None:
                continue
            half, agreement = found
            if agreement is not None and agreement.need is not None:
                need = Need(**agreement.need)
            tests = dict(agreement.tests) if agreement and with_tests else {}
            # Statements of earlier bundles would pile up from daemon to daemon.
            tests.pop(CLAIMS, None)
            halves.append(
                BundledHalf(one, half.source, half.origin, self._schemas(half), tests)
            )
            created = max(created, half.created)
        if not halves:
            what = "code" if role is None else f"code for the {role}"
            whom = "" if peer_did is None else f" for {peer_did}"
            raise CallError(
                ErrorKind.USAGE,
                f"no active {what} of {digest[:12]}{whom} is in use here; "
                f"`anpd protocols show {digest[:12]}` shows all code",
            )
        did = self._own_did if with_did else None
        return render_bundle(Bundle(document.text, need, tuple(halves), created, did))

    def _in_use(
        self, digest: str, role: Role, peer_did: str | None
    ) -> tuple[HalfRecord, AgreementRecord | None] | None:
        """Return the half that is used, and the newest agreement that uses it."""
        agreements = active_agreements(self._store, digest, role, peer_did)
        revisions = sorted({one.revision for one in agreements})
        if len(revisions) > 1 and peer_did is None:
            raise CallError(
                ErrorKind.USAGE,
                f"{len(revisions)} revisions of the {role}'s code of {digest[:12]} "
                "are in use; name the peer that uses the wanted one with --peer",
            )
        active = [
            half
            for half in self._store.halves(digest)
            if half.role.value == role.value and half.state is AgreementState.ACTIVE
        ]
        if agreements:
            active = [h for h in active if h.revision == agreements[0].revision]
            return (active[0], agreements[0]) if active else None
        # The one that `provider_half` serves to peers without a revision of their own.
        return (active[0], None) if active and peer_did is None else None

    def _schemas(self, half: HalfRecord) -> tuple[BundledCapability, ...]:
        attached = {one.name: one for one, _ in self._exposure.all()}
        found = []
        for name, digest in half.capabilities.items():
            capability = attached.get(name)
            if capability is None or schema_hash(capability) != digest:
                why = "has other schemas now" if capability else "is not attached"
                raise CallError(
                    ErrorKind.USAGE,
                    f"the code calls {name}, which {why}, so its schemas cannot be "
                    "put into a bundle",
                )
            found.append(
                BundledCapability(
                    name,
                    capability.input_schema,
                    capability.output_schema,
                    capability.updates,
                )
            )
        return tuple(found)
