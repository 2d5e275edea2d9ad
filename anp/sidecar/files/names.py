"""Names of files that a peer gives: data, of which a plain name is made."""

from __future__ import annotations

from collections.abc import Iterator

MAX_NAME = 120
"Most characters of a name."

MAX_BYTES = 200
"Most bytes of a name; what numbers and endings add is beside it."

MAX_SAME = 1_000
"Files of one name that are kept beside each other."


def plain_name(name: str) -> str:
    """Return a peer's name as that of a file in a folder.

    Of a path only its end counts, and dots at the beginning go. It may be empty.
    """
    base = name.replace("\\", "/").rpartition("/")[2]
    base = "".join(c for c in base if c.isprintable()).lstrip(". ")[-MAX_NAME:]
    plain = base.encode("utf-8", "replace")[-MAX_BYTES:].decode("utf-8", "ignore")
    return plain.lstrip(". ")


def names_for(name: str) -> Iterator[str]:
    """Yield the names to try for a file, the later ones with a number."""
    base = plain_name(name) or "content"
    stem, dot, ending = base.rpartition(".")
    if not stem:
        stem, dot, ending = base, "", ""
    for number in range(MAX_SAME):
        yield f"{stem}{f'-{number}' if number else ''}{dot}{ending}"
