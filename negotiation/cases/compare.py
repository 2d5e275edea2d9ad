"""Compares two messages by their values, and describes the differences in words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from negotiation.cases.case import TestCase
from negotiation.document.layout import read_layout
from negotiation.document.shape import Document, MessageKind
from negotiation.errors import DocumentError, JsonError
from negotiation.schema.keywords import cut, pointer
from negotiation.schema.values import same_json
from negotiation.strict_json import Json, canonical_json, parse_json

__all__ = ["Reader", "compare", "differences_of", "values_of"]

MAX_DIFFERENCES: Final = 10
"Largest number of differences that are described."

MAX_MESSAGE: Final = 1024 * 1024
"Largest message that is compared, in bytes."

Reader = Callable[[str, bytes], Awaitable[dict[str, Any]]]
"Reads the values of a message whose bytes are not JSON, as `read_message` does."


async def compare(
    case: TestCase,
    actual: bytes,
    document: Document,
    *,
    read: Reader | None = None,
    sent: bytes | None = None,
) -> list[str]:
    """Return the differences between an answer and the agreed one; ids are ignored.

    Args:
        read: Reads messages whose bytes are not JSON.
        sent: The request that `actual` answers. If given, the answer must have the
            same message id, which real calls need to find their answers.

    Raises:
        HalfError: One of the two messages cannot be read.
    """
    if case.response is None:
        return ["the case has no response"]
    try:
        agreed = await values_of(MessageKind.RESPONSE, case.response, document, read)
        found = await values_of(MessageKind.RESPONSE, actual, document, read)
    except JsonError as exc:
        return [f"the answer cannot be read: {exc}"]
    name = _message_id(document)
    differences: list[str] = []
    if name is not None:
        wanted = _taken(agreed, name)
        carried = _taken(found, name)
        if (wanted is None) != (carried is None):
            what = "unexpected" if wanted is None else "missing"
            differences.append(f"{_place((name,))} is {what}")
        elif sent is not None and carried is not None:
            asked = await _sent_id(sent, name, document, read)
            if asked is not None and carried != asked:
                differences.append(f"{_place((name,))} is not that of the request")
    return [*differences, *differences_of(agreed, found)][:MAX_DIFFERENCES]


def differences_of(agreed: Json, found: Json) -> list[str]:
    """Return the differences of two values, with their places as JSON pointers."""
    differences: list[str] = []
    _differ(agreed, found, (), differences)
    return differences[:MAX_DIFFERENCES]


async def values_of(
    kind: MessageKind, data: bytes, document: Document, read: Reader | None
) -> Json:
    """Return the values of a message.

    Args:
        read: Reads messages whose bytes are not JSON.

    Raises:
        JsonError: The message is not JSON, or its values are not.
        HalfError: `read` cannot read it.
    """
    if document.is_json or read is None:
        return parse_json(data, max_size=MAX_MESSAGE)
    # The result of `read_message` comes from generated code: it may not be plain JSON.
    return parse_json(
        canonical_json(await read(kind.value, data)), max_size=4 * MAX_MESSAGE
    )


async def _sent_id(
    request: bytes, name: str, document: Document, read: Reader | None
) -> Json:
    try:
        return _taken(
            await values_of(MessageKind.REQUEST, request, document, read), name
        )
    except JsonError:
        return None


def _message_id(document: Document) -> str | None:
    try:
        return read_layout(document.of_values).message_id
    except DocumentError:
        return None


def _taken(message: Json, name: str) -> Json:
    """Remove a field from a message and return its value, or None if absent."""
    return message.pop(name, None) if isinstance(message, dict) else None


def _place(path: tuple[str, ...]) -> str:
    """Return a place in a message as a JSON pointer."""
    return "".join(f"/{pointer(name)}" for name in path)


def _differ(
    agreed: Json, found: Json, path: tuple[str, ...], differences: list[str]
) -> None:
    """Add the differences of two values, with their places as JSON pointers."""
    if len(differences) > MAX_DIFFERENCES:
        return
    where = _place(path) if path else "the answer"
    if isinstance(agreed, dict) and isinstance(found, dict):
        for name in sorted(agreed.keys() | found.keys()):
            inner = (*path, name)
            if name not in found:
                differences.append(f"{_place(inner)} is missing")
            elif name not in agreed:
                differences.append(f"{_place(inner)} is not in the agreed response")
            else:
                _differ(agreed[name], found[name], inner, differences)
    elif isinstance(agreed, list) and isinstance(found, list):
        if len(agreed) != len(found):
            differences.append(
                f"{where} has {len(found)} items, agreed are {len(agreed)}"
            )
        for index, (one, other) in enumerate(zip(agreed, found, strict=False)):
            _differ(one, other, (*path, str(index)), differences)
    elif not same_json(agreed, found):
        differences.append(f"{where} is {cut(found)}, agreed is {cut(agreed)}")
