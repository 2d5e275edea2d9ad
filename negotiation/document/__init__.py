"""The document that two agents agree on, read and written.

* `reader`: reads a candidate: its schemas of request and response.
* `renderer`: writes our documents as deterministic Markdown.
* `shape`: a document once it is read, and its hash.
* `markdown`: the little Markdown that is understood, in linear time.
* `headings`: tells from a heading what the block below it is about.
* `bases`: the protocol that a candidate builds on (ANP-26).
* `encodings`: the words of a document about bytes that are not JSON.
* `examples`: the worked examples of such a document.
* `layout`: the purpose of each field: correlation, outcome, values.
* `fields`: sorts the top-level properties of a message by purpose.
* `outcome`: tells from a response whether it is good or an error.
* `parts`: the parts of a message that a half fills in.
* `message_judge`: validates the bytes of a message against the document.
"""

from __future__ import annotations

from negotiation.document.reader import read_document
from negotiation.document.renderer import render_document, render_encoded_document
from negotiation.document.shape import (
    MAX_DOCUMENT_SIZE,
    Document,
    DocumentErrorCode,
    ExampleKind,
    MessageKind,
    WorkedExample,
    document_hash,
)

__all__ = [
    "MAX_DOCUMENT_SIZE",
    "Document",
    "DocumentErrorCode",
    "ExampleKind",
    "MessageKind",
    "WorkedExample",
    "document_hash",
    "read_document",
    "render_document",
    "render_encoded_document",
]
