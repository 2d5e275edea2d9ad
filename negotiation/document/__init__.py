"""The document that two agents agree on: its parts, its reader and its renderer."""

from __future__ import annotations

from negotiation.document.reader import read_document
from negotiation.document.renderer import render_document, render_encoded_document
from negotiation.document.shape import (
    MAX_DOCUMENT_SIZE,
    Document,
    ErrorCode,
    ExampleKind,
    MessageKind,
    WorkedExample,
    document_hash,
)

__all__ = [
    "MAX_DOCUMENT_SIZE",
    "Document",
    "ErrorCode",
    "ExampleKind",
    "MessageKind",
    "WorkedExample",
    "document_hash",
    "read_document",
    "render_document",
    "render_encoded_document",
]
