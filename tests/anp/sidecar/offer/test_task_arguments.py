"""The arguments that the parts of a task are."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from anp.interaction.elements import Message, Part, SenderRole, Task
from anp.sidecar.attachments.part_json import FILE
from anp.sidecar.offer.task_arguments import (
    LaidFile,
    UnfitPartsError,
    arguments_of,
    further_parts,
)
from negotiation.need import Capability

PNG = Part.data(b"\x00png", media_type="image/png", name="photo.png")
NOTE = Part.data(b"note", name="note.txt")


def found(*parts: Part, **properties: Any) -> dict[str, Any]:
    """Return the arguments of a task for a capability with these properties."""
    required = ["text"] if "text" in properties else []
    schema = {"type": "object", "properties": properties, "required": required}
    capability = Capability("a.b", "", schema, {"type": "object"})
    return arguments_of(task_of(*parts), capability)


def task_of(*parts: Part) -> Task:
    message = Message(
        id="1", session="s", sender="a", role=SenderRole.REQUESTER, parts=parts
    )
    return Task(
        id="1",
        session="s",
        requester="a",
        executor="b",
        messages=(message,)[: len(parts)],
    )


def as_json(part: Part) -> dict[str, str]:
    assert isinstance(part.content, bytes)
    data = base64.b64encode(part.content).decode()
    return {"mediaType": part.media_type, "name": part.name, "data": data}


TEXT = {"type": "string"}
FILES = {"type": "array", "items": FILE}


def test_a_file_beside_a_text_or_an_object_is_an_argument_too() -> None:
    whole = {"text": "see", "files": [as_json(PNG), as_json(NOTE)]}
    assert found(Part.text("see"), PNG, NOTE, text=TEXT, files=FILES) == whole
    given = Part.value({"text": "see", "files": [as_json(PNG)]})
    assert found(given, NOTE, text=TEXT, files=FILES) == whole


def test_a_file_goes_to_the_argument_of_its_name() -> None:
    properties = {"other": FILE, "photo": FILE, "note.txt": FILES}
    assert found(NOTE, PNG, **properties) == {
        "photo": as_json(PNG),
        "note.txt": [as_json(NOTE)],
    }
    assert found(NOTE, PNG, first=FILE, second=FILE) == {
        "first": as_json(NOTE),
        "second": as_json(PNG),
    }


@pytest.mark.parametrize(
    ("parts", "properties"),
    [
        ((Part.text("see"), PNG), {"text": TEXT}),
        ((Part.value({"photo": as_json(PNG)}), PNG), {"photo": FILE}),
        ((PNG, NOTE), {"photo": FILE}),
        ((Part.value({"files": "none"}), NOTE), {"files": FILES}),
    ],
)
def test_a_file_without_a_place_is_refused_by_name(
    parts: tuple[Part, ...], properties: dict[str, Any]
) -> None:
    with pytest.raises(UnfitPartsError, match=parts[-1].name):
        found(*parts, **properties)


def test_nothing_is_an_empty_object_and_a_text_needs_its_place() -> None:
    assert found(photo=FILE) == {}
    assert found(Part.text("a"), Part.text("b"), text=TEXT) == {"text": "a\nb"}
    with pytest.raises(UnfitPartsError, match="a JSON object"):
        found(Part.text("a"), photo=FILE)
    with pytest.raises(UnfitPartsError, match="a JSON object"):
        found(Part.value([1]), photo=FILE)


def test_a_text_with_data_and_files_goes_whole_to_an_agent_that_takes_all() -> None:
    places = {"text": TEXT, "data": {"type": "object"}, "files": FILES}
    order = Part.value({"order": 2**70})
    assert found(Part.text("hello"), order, NOTE, **places) == {
        "text": "hello",
        "data": {"order": 2**70},
        "files": [as_json(NOTE)],
    }
    assert found(order, **places) == {"text": "", "data": {"order": 2**70}}
    # An object of arguments is what it was.
    assert found(Part.value({"text": "hi"}), **places) == {"text": "hi"}
    assert found(Part.text("a"), Part.value({"data": {"b": 1}}), **places) == {
        "text": "a",
        "data": {"b": 1},
    }
    with pytest.raises(UnfitPartsError, match="one JSON object"):
        found(Part.text("hello"), order, order, **places)


def announced(size: int) -> Part:
    return Part.link("urn:anpd:file:1", name="big", size=size, sha256="0" * 64)


def test_a_path_is_an_argument_for_a_file() -> None:
    path = {"type": "string", "format": "path"}
    optional = {"anyOf": [path, {"type": "null"}]}
    assert found(PNG, text=TEXT, book=path) == {"book": LaidFile(PNG, as_path=True)}
    assert found(PNG, book=optional) == {"book": LaidFile(PNG, as_path=True)}
    several = {"type": "array", "items": path}
    big = announced(10**9)
    assert found(big, PNG, more=several) == {
        "more": [LaidFile(big, as_path=True), LaidFile(PNG, as_path=True)]
    }
    # A text is no path.
    with pytest.raises(UnfitPartsError):
        arguments_of(
            Task(
                id="1",
                session="s",
                requester="a",
                executor="b",
                messages=(
                    Message(
                        id="1",
                        session="s",
                        sender="a",
                        role=SenderRole.REQUESTER,
                        parts=(Part.text("/etc/passwd"),),
                    ),
                ),
            ),
            Capability(
                "a.b",
                "",
                {"type": "object", "properties": {"b": path}, "required": ["b"]},
                {"type": "object"},
            ),
        )
    with pytest.raises(UnfitPartsError):
        found(Part.link("https://a.example/b"), book=path)


def test_an_announced_file_is_an_object_only_when_it_is_small() -> None:
    small = announced(1000)
    assert found(small, photo=FILE) == {"photo": LaidFile(small, as_path=False)}
    with pytest.raises(UnfitPartsError, match="at most"):
        found(announced(3_000_000), photo=FILE)


def test_a_text_beside_an_object_fills_the_one_text_that_is_missing() -> None:
    properties = {"text": TEXT, "lines": {"type": "integer"}}
    beside = found(Part.value({"lines": 2}), Part.text("see"), **properties)
    assert beside == {"lines": 2, "text": "see"}
    given = found(Part.value({"text": "mine"}), Part.text("see"), **properties)
    assert given == {"text": "mine"}


def test_everything_that_is_no_argument_is_a_further_part() -> None:
    value, words, more = Part.value({"n": 1}), Part.text("mind"), Part.value([1])
    assert further_parts(task_of(value, words, PNG, more), {"n": 1}) == [words, more]
    # The same object twice is one argument, and no further part.
    assert further_parts(task_of(words, value), {"text": "mind", "n": 1}) == []
    assert further_parts(task_of(), {}) == []
