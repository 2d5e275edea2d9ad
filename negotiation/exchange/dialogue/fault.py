"""Decides by the document's schemas which side a reported error belongs to (ANP-60)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal

from negotiation.document.message_judge import MessageJudge
from negotiation.document.shape import Document, MessageKind
from negotiation.errors import HalfError, JsonError
from negotiation.exchange.events import Fault, OurFault, PeerFault
from negotiation.messages import cut_text
from negotiation.mind import Validator
from negotiation.schema.keywords import cut

__all__ = ["MessageReader", "judge_fault"]

MessageReader = Callable[[str, bytes], Awaitable[dict[str, Any]]]
"Runs `read_message` of our half, for bytes that are not JSON."

MAX_FINDINGS: Final = 20
"Largest number of findings in a judgement."

MAX_FINDING: Final = 500
"Longest finding, in characters."

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
