"""The store of one simulated side, which lasts from one connection to the next."""

from __future__ import annotations

import json

from cache.errors import RecordError
from cache.records.records import DocumentRecord


class Shelf:
    """Documents as the bytes of their records, and the halves for them."""

    def __init__(self) -> None:
        self._documents: dict[str, bytes] = {}
        # Hashes whose half is there, the newest last.
        self._halves: dict[str, None] = {}

    def keep(self, text: str, digest: str) -> None:
        """Store an agreement: the document and our half."""
        record = DocumentRecord.of(text)
        assert record.hash == digest, "an agreement under a hash that is not its own"
        known = self.text(digest)
        assert known in {None, text}, "two texts for one hash"
        self._documents[digest] = json.dumps(record.to_json()).encode()
        self._halves.pop(digest, None)
        self._halves[digest] = None

    def text(self, digest: str) -> str | None:
        """Return the document of a hash if it is there and whole."""
        try:
            return DocumentRecord.from_bytes(self._documents.get(digest, b"")).text
        except RecordError:
            return None

    def holds(self, digest: str) -> bool:
        """Whether `digest` can be spoken: its document is whole, its half is there."""
        return digest in self._halves and self.text(digest) is not None

    def newest(self) -> str | None:
        """Return the newest hash that can be spoken."""
        return next((one for one in reversed(self._halves) if self.holds(one)), None)

    def texts(self) -> dict[str, str]:
        """Return every document that is whole, by hash."""
        found = {one: self.text(one) for one in self._documents}
        return {one: text for one, text in found.items() if text is not None}

    def forget_half(self, digest: str) -> None:
        """Lose the half of one document."""
        self._halves.pop(digest, None)

    def damage(self, digest: str) -> None:
        """Change one character of a stored text."""
        stored = json.loads(self._documents[digest])
        stored["text"] = stored["text"][:-1] + "?"
        self._documents[digest] = json.dumps(stored).encode()
