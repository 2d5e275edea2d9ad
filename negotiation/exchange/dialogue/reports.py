"""Reports of errors: their text, and the side that an error belongs to.

An `errorDescription` has the reference of the message and its faults. The schemas of
the document decide whose fault a reported error is (ANP-60).
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Literal

from negotiation.document.message_judge import MessageJudge
from negotiation.document.shape import Document, MessageKind
from negotiation.errors import HalfError, JsonError
from negotiation.exchange.events import Fault, OurFault, PeerFault
from negotiation.exchange.limits import MAX_SUMMARY
from negotiation.messages import cut_text
from negotiation.mind import Validator
from negotiation.schema.keywords import cut

MAX_DESCRIPTION: Final = MAX_SUMMARY
"Longest description that we send, in characters: at worst 64 KiB of UTF-8."

MAX_EXCERPT: Final = 300
"Longest quotation of the faulty message in a description, in characters."

MAX_REFERENCE: Final = 128
"Longest message id that is quoted, in characters; real ones have 16 or 32."

MAX_FINDINGS: Final = 20
"Largest number of findings in one description or judgement."

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


MessageReader = Callable[[str, bytes], Awaitable[dict[str, Any]]]
"Runs `read_message` of our half, for bytes that are not JSON."

MAX_NAMES: Final = 20
"Largest number of fields that a refusal lists."

MAX_QUOTE: Final = 300
"Longest quotation of the peer's report in a refusal, in characters."


async def judge_fault(
    kind: Literal["request", "response"],
    message: bytes,
    document: Document,
    description: str,
    *,
    validator: Validator,
    read: MessageReader | None = None,
) -> Fault:
    """Judge a message of ours that the peer reports as faulty.

    The document decides, not the report: a message that fits is right, and one that
    does not is our fault, independent of the peer's findings. A response that reports
    an error in the document's own form need not have the result; one that reports
    success must have it.

    Args:
        kind: The kind of the message.
        message: Its plaintext as we sent it.
        description: The peer's report; it is quoted, but never followed.
        validator: Validates values against schemas.
        read: Our half's `read_message`, for a document whose bytes are not JSON.
    """
    asked = _asked(description)
    if read is None and not document.is_json:
        return PeerFault(
            f"The {kind} could not be checked: its bytes are "
            f"{cut(document.encoding)}, and nothing here reads them.{asked}"
        )
    judge = MessageJudge(document, _Parser(read), validator)
    try:
        findings = await judge.judge(MessageKind(kind), message)
        values = None if findings else await judge.values(MessageKind(kind), message)
    except (HalfError, JsonError):
        # The reader was stopped; the bytes may still be right.
        return PeerFault(f"The {kind} could not be checked in time.{asked}")
    if findings:
        return OurFault(
            tuple(cut_text(one, MAX_FINDING) for one in findings[:MAX_FINDINGS])
        )
    return PeerFault(
        f"The {kind} of {len(message)} bytes was checked again and fits the {kind} "
        f"schema of the agreed document. {_seen(values)}{asked}"
    )


class _Parser:
    """Gives the judge our half's reader; for JSON it is never called."""

    def __init__(self, read: MessageReader | None) -> None:
        self._read = read

    async def read_message(self, kind: str, data: bytes) -> dict[str, Any]:
        if self._read is None:
            raise HalfError("rejected", "the bytes are JSON")
        return await self._read(kind, data)


def _seen(values: object) -> str:
    if not isinstance(values, dict):
        return f"It is a value of type {type(values).__name__}."
    names = [cut(name) for name in list(values)[:MAX_NAMES]]
    more = len(values) - len(names)
    rest = f" and {more} more" if more > 0 else ""
    return f"It has the fields {', '.join(names) or 'none'}{rest}."


def _asked(description: str) -> str:
    words = " ".join(description.split())
    if not words:
        return " Please say which field is wrong."
    return (
        f" Reported was: {cut_text(words, MAX_QUOTE)!r}."
        " Please say which rule of the document the message breaks."
    )
