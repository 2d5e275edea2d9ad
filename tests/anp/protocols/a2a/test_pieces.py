"""Answers cut to the size of a frame."""

from __future__ import annotations

import json
from typing import Any

import pytest

from anp.interaction.elements import Part
from anp.protocols.a2a.objects import (
    A2aMessage,
    A2aTask,
    Artifact,
    ArtifactUpdate,
    TaskUpdate,
)
from anp.protocols.a2a.pieces import in_pieces
from anp.protocols.a2a.results import read_result
from anp.protocols.a2a.words import A2aError, A2aFault, A2aVersion
from anp.protocols.a2a.writer import write_stream
from tests.clauses import clause

MOST = 2000
VERSIONS = pytest.mark.parametrize("version", list(A2aVersion))


def parts(number: int, size: int) -> tuple[Part, ...]:
    return tuple(Part.text(str(one) * size) for one in range(number))


def told(update: TaskUpdate, version: A2aVersion) -> list[Any]:
    body = {"jsonrpc": "2.0", "id": 7, "result": write_stream(update, version)}
    found = list(in_pieces(body, version, MOST))
    assert all(len(one) <= MOST for one in found)
    bodies = [json.loads(one) for one in found]
    assert {one["id"] for one in bodies} == {7}
    return [read_result(one["result"], version) for one in bodies]


@VERSIONS
def test_what_fits_goes_as_it_is(version: A2aVersion) -> None:
    update = ArtifactUpdate(
        task="t", context="c", artifact=Artifact(id="a", parts=parts(3, 100))
    )
    assert told(update, version) == [update]


@clause("A2A-18")
@VERSIONS
@pytest.mark.parametrize("append", [False, True])
def test_an_artifact_goes_in_pieces_of_whole_parts(
    version: A2aVersion, append: bool
) -> None:
    whole = parts(9, 500)
    update = ArtifactUpdate(
        task="t",
        context="c",
        artifact=Artifact(id="a", name="n", parts=whole),
        append=append,
        last=True,
    )
    found = told(update, version)
    assert len(found) > 2
    assert tuple(part for one in found for part in one.artifact.parts) == whole
    assert [one.append for one in found] == [append] + [True] * (len(found) - 1)
    assert [one.last for one in found] == [False] * (len(found) - 1) + [True]
    assert {one.artifact.name for one in found} == {"n"}


@clause("A2A-15", "A2A-18")
@VERSIONS
def test_a_task_comes_after_its_artifacts_and_without_its_history(
    version: A2aVersion,
) -> None:
    said = A2aMessage(id="m", parts=parts(1, 900))
    task = A2aTask(
        id="t",
        context="c",
        state="completed",
        history=(said, said),
        artifacts=(
            Artifact(id="a", parts=parts(5, 500)),
            Artifact(id="b", parts=parts(1, 10)),
        ),
    )
    *updates, last = told(task, version)
    assert last == A2aTask(id="t", context="c", state="completed")
    of_all: dict[str, tuple[Part, ...]] = {}
    for one in updates:
        assert one.append is (one.artifact.id in of_all)
        before = of_all.get(one.artifact.id, ())
        of_all[one.artifact.id] = (*before, *one.artifact.parts)
    assert of_all == {"a": parts(5, 500), "b": parts(1, 10)}


@VERSIONS
def test_what_cannot_be_cut_is_an_error_of_the_version(version: A2aVersion) -> None:
    artifact = Artifact(id="a", parts=(*parts(1, 10), *parts(1, MOST)))
    for update in (
        ArtifactUpdate(task="t", context="c", artifact=artifact),
        A2aMessage(id="m", parts=parts(1, MOST)),
    ):
        with pytest.raises(A2aError) as caught:
            told(update, version)
        error = caught.value.to_json(version)
        assert error["code"] == -32030
        assert f"a frame here {MOST}" in error["message"]
        assert ("data" in error) is (version is A2aVersion.V10)


def test_an_answer_that_is_no_stream_is_not_cut() -> None:
    artifact = Artifact(id="a", parts=parts(9, 500))
    update = ArtifactUpdate(task="t", context="c", artifact=artifact)
    body = {"id": 7, "result": write_stream(update, A2aVersion.V10)}
    with pytest.raises(A2aError) as caught:
        list(in_pieces(body, A2aVersion.V10, MOST, is_stream=False))
    assert caught.value.fault is A2aFault.RESULT_TOO_LARGE
