"""Answers of A2A cut to the size of a frame, where there are frames. Pure.

A stream may give an artifact in any number of updates, so one that is too large goes in
several, each with whole parts. A single part is never cut: a text in two parts means
something else than the same text in one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from anp.protocols.a2a.words import A2aError, A2aFault, A2aVersion
from jsonic.exact_numbers import write_json

ENVELOPE: Final = 64
"Bytes for what a piece has more than the update of which it is made."


def body_bytes(body: Any) -> bytes:
    """Return the bytes of an answer."""
    return write_json(body, ensure_ascii=False, separators=(",", ":")).encode()


def check_size(size: int, most: int) -> None:
    """Check that a frame takes so many bytes; A2aError RESULT_TOO_LARGE if not."""
    if size > most:
        raise A2aError(
            A2aFault.RESULT_TOO_LARGE,
            f"the result has {size} bytes and a frame here {most}; another "
            "protocol brings it",
        )


def in_pieces(
    body: Mapping[str, Any], version: A2aVersion, most: int, *, is_stream: bool = True
) -> Iterator[bytes]:
    """Yield the bytes of an answer, in several of them if one is too large.

    Of a task its artifacts go first, and then what remains without its history.

    Args:
        most: Bytes of a frame.
        is_stream: It may have several answers.

    Raises:
        A2aError: RESULT_TOO_LARGE, it or a part of it fits no frame.
    """
    data = body_bytes(body)
    if len(data) <= most or not is_stream:
        check_size(len(data), most)
        yield data
        return
    around = len(body_bytes({**body, "result": None}))
    for result in _cut(body.get("result"), version, most - around):
        data = body_bytes({**body, "result": result})
        check_size(len(data), most)
        yield data


def _cut(result: Any, version: A2aVersion, most: int) -> Iterator[Any]:
    is_old = version is A2aVersion.V03
    if not isinstance(result, dict) or not result:
        yield result
        return
    kind = result.get("kind") if is_old else next(iter(result))
    found = result if is_old else result[kind]
    if kind in ("artifact-update", "artifactUpdate"):
        for update in _updates(found, most):
            yield _wrap(update, kind, is_old)
    elif kind == "task":
        name = "artifact-update" if is_old else "artifactUpdate"
        for update in _artifacts(found, most, {"kind": name} if is_old else {}):
            yield _wrap(update, name, is_old)
        # After it the stream may end.
        apart = ("artifacts", "history")
        yield _wrap({k: v for k, v in found.items() if k not in apart}, kind, is_old)
    else:
        # A message has nothing that could come later.
        yield result


def _artifacts(
    task: Mapping[str, Any], most: int, kind: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    for artifact in task.get("artifacts", ()):
        update = {
            "taskId": task["id"],
            "contextId": task["contextId"],
            "artifact": artifact,
            "append": False,
            "lastChunk": False,
            **kind,
        }
        yield from _updates(update, most)


def _updates(update: Mapping[str, Any], most: int) -> Iterator[dict[str, Any]]:
    """Yield updates that together say what one says."""
    artifact = update["artifact"]
    bare = {**update, "artifact": {**artifact, "parts": []}}
    room = most - len(body_bytes(bare)) - ENVELOPE
    groups: list[list[Any]] = [[]]
    used = 0
    for part in artifact["parts"]:
        size = len(body_bytes(part)) + 1
        if groups[-1] and used + size > room:
            groups.append([])
            used = 0
        groups[-1].append(part)
        used += size
    for index, parts in enumerate(groups):
        yield {
            **update,
            "artifact": {**artifact, "parts": parts},
            "append": update["append"] or index > 0,
            "lastChunk": update["lastChunk"] and index == len(groups) - 1,
        }


def _wrap(found: dict[str, Any], kind: str, is_old: bool) -> dict[str, Any]:
    return found if is_old else {kind: found}
