"""The text of an `errorDescription`: the message's reference, and its faults."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from negotiation.exchange.limits import MAX_SUMMARY
from negotiation.messages import cut_text

__all__ = [
    "MAX_DESCRIPTION",
    "MAX_EXCERPT",
    "MAX_REFERENCE",
    "describe_error",
    "headed",
    "read_description",
]

MAX_DESCRIPTION: Final = MAX_SUMMARY
"Longest description that we send, in characters: at worst 64 KiB of UTF-8."

MAX_EXCERPT: Final = 300
"Longest quotation of the faulty message in a description, in characters."

MAX_REFERENCE: Final = 128
"Longest message id that is quoted, in characters; real ones have 16 or 32."

MAX_FINDINGS: Final = 20
"Largest number of findings in one description."

MAX_FINDING: Final = 500
"Longest finding, in characters."

MAX_HEX: Final = 64
"Largest number of bytes that are quoted of a message that is no text."

# Visible ASCII without Markdown marks, so that it is read as it was sent.
_VISIBLE: Final = r"[!#-)+-_a-~]"
_REFERENCE: Final = re.compile(rf"{_VISIBLE}{{1,{MAX_REFERENCE}}}")
# Models often format the line: as a list item, in bold, as code.
_FIRST_LINE: Final = re.compile(
    rf"[\s#>*_`-]*messageId[*_`]*\s*[:\uff1a][*_`]*\s*[`*\"]*({_VISIBLE}+)[`*\"]*",
    re.IGNORECASE,
)


def describe_error(
    reference: str | None, findings: Sequence[str], excerpt: bytes
) -> str:
    """Return the text that reports the faulty message `reference` (ANP-58, ANP-Q25).

    Args:
        reference: Message id of its encrypted envelope, chosen by the peer. It is left
            out when it is None or not 1 to 128 visible ASCII characters without `, *
            and ".
        findings: The faults in words.
        excerpt: The message; its beginning is quoted as one line.
    """
    lines = ["# Error description"]
    lines += [f"- {_line(one)}" for one in findings[:MAX_FINDINGS]]
    if len(findings) > MAX_FINDINGS:
        lines.append(f"- and {len(findings) - MAX_FINDINGS} more")
    lines.append(f"- the message begins with {_quoted(excerpt)}")
    return headed(reference, "\n".join(lines))


def read_description(text: str) -> tuple[str | None, str]:
    """Return the message id in the first line, if there is one, and the other text.

    A text without it, such as the seed's example (ANP-62), is returned whole.
    """
    first, _, rest = text.lstrip().partition("\n")
    # The pattern is only tried on lines that are short enough to match.
    found = _FIRST_LINE.fullmatch(first.rstrip()) if len(first) < 200 else None
    if found is None or not _REFERENCE.fullmatch(found[1]):
        return None, text.strip()
    return found[1], rest.strip()


def headed(reference: str | None, text: str) -> str:
    """Return `text` under the line with the reference, shortened to the limit."""
    known, rest = read_description(text)
    if reference is None or not _REFERENCE.fullmatch(reference):
        return cut_text(text, MAX_DESCRIPTION)
    words = rest if known == reference else text.strip()
    return cut_text(f"messageId: {reference}\n{words}", MAX_DESCRIPTION)


def _line(text: str) -> str:
    # A finding may quote the peer, whose line breaks must not look like ours.
    return cut_text(" ".join(text.split()), MAX_FINDING)


def _quoted(message: bytes) -> str:
    try:
        text = message.decode("utf-8")
    except UnicodeDecodeError:
        shown = message[:MAX_HEX].hex()
        return f"the bytes {shown} ({len(message)} bytes, no UTF-8)"
    return f"{json.dumps(text[:MAX_EXCERPT])} ({len(message)} bytes)"
