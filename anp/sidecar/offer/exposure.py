"""The attached capabilities, and which of them are exposed to peers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from anp.sidecar.attachments import Attachment, AttachmentSpec
from negotiation.need import Capability, schema_hash

__all__ = ["Exposure"]


class Exposure:
    """The attached capabilities, and which of them peers may use."""

    def __init__(self) -> None:
        self._attachments: dict[str, tuple[AttachmentSpec, Attachment]] = {}
        self._watchers: list[Callable[[], None]] = []

    @property
    def attachments(self) -> Mapping[str, tuple[AttachmentSpec, Attachment]]:
        """Every attachment by name."""
        return self._attachments

    def put(self, spec: AttachmentSpec, attachment: Attachment) -> None:
        """Add or replace an attachment."""
        self._attachments[spec.name] = (spec, attachment)
        self.changed()

    def drop(self, name: str) -> None:
        """Take an attachment away."""
        self._attachments.pop(name, None)
        self.changed()

    def watch(self, on_change: Callable[[], None]) -> None:
        """Call `on_change` whenever capabilities or their exposure changed."""
        self._watchers.append(on_change)

    def changed(self) -> None:
        """Tell the watchers."""
        for on_change in self._watchers:
            on_change()

    def all(self) -> list[tuple[Capability, bool]]:
        """Return every attached capability and whether it is exposed."""
        return [
            (capability, _exposes(spec, capability.name))
            for spec, attachment in self._attachments.values()
            for capability in attachment.capabilities()
        ]

    def offered(self) -> tuple[Capability, ...]:
        """Return the capabilities that are exposed, attached and healthy, by name."""
        return tuple(
            sorted(
                (
                    capability
                    for spec, attachment in self._attachments.values()
                    if attachment.healthy
                    for capability in attachment.capabilities()
                    if _exposes(spec, capability.name)
                ),
                key=lambda capability: capability.name,
            )
        )

    def fits(self, wanted: Mapping[str, str]) -> str | None:
        """Return why capabilities `{name: schema hash}` cannot be called, or None."""
        offered = {capability.name: capability for capability in self.offered()}
        for name, digest in wanted.items():
            capability = offered.get(name)
            if capability is None:
                return f"{name} is not exposed or not healthy"
            if schema_hash(capability) != digest:
                return f"the schema of {name} has changed"
        return None

    def exposes(self, name: str) -> bool:
        """True if the owner exposes a capability, whether or not it is healthy."""
        entry = self._attachments.get(name.partition(".")[0])
        return entry is not None and _exposes(entry[0], name)

    def capability(self, name: str) -> Capability | None:
        """Return an exposed, healthy capability by its full name."""
        return next((c for c in self.offered() if c.name == name), None)

    def conversational(self) -> Capability | None:
        """Return the first exposed capability that takes natural language (ANP-71)."""
        for capability in self.offered():
            spec, _ = self._attachments[capability.name.partition(".")[0]]
            if capability.name.partition(".")[2] in spec.conversational:
                return capability
        return None

    def attachment_of(self, name: str) -> Attachment | None:
        """Return the attachment that has the capability `name`."""
        entry = self._attachments.get(name.partition(".")[0])
        return entry[1] if entry else None


def _exposes(spec: AttachmentSpec, name: str) -> bool:
    short = name.partition(".")[2]
    return "*" in spec.expose or name in spec.expose or short in spec.expose
