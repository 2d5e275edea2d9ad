"""The owner's tools, each attached by a kind of its own."""

from anp.sidecar.attachments.attachment import Attachment, AttachmentLimits
from anp.sidecar.attachments.errors import AttachmentError, CapabilityError
from anp.sidecar.attachments.kinds import open_attachment
from anp.sidecar.attachments.spec import (
    AttachmentSpec,
    load_attachments,
    remove_attachment,
    save_attachment,
)

__all__ = [
    "Attachment",
    "AttachmentError",
    "AttachmentLimits",
    "AttachmentSpec",
    "CapabilityError",
    "load_attachments",
    "open_attachment",
    "remove_attachment",
    "save_attachment",
]
