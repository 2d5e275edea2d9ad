"""Input and output modes (A2A-19)."""

from __future__ import annotations

import pytest

from anp.interaction.elements import Part
from anp.protocols.a2a.modes import (
    fit,
    input_modes,
    is_taken,
    output_modes,
    takes_files,
)
from anp.protocols.a2a.objects import A2aTask, Artifact, ArtifactUpdate, StatusUpdate
from negotiation.need import Capability
from tests.clauses import clause


@clause("A2A-19")
@pytest.mark.parametrize(
    ("accepted", "taken"),
    [
        ([], True),
        (["text/plain"], True),
        (["TEXT/plain; charset=utf-8"], True),
        (["text"], True),
        (["application/*"], True),
        (["*/*"], True),
        (["image/png"], True),
        (["image/*"], True),
        (["image/jpeg"], False),
        (["video/mp4", "audio/*"], False),
    ],
)
def test_a_client_says_what_it_takes(accepted: list[str], taken: bool) -> None:
    draw = Capability("a.b", "", {}, {}, output_modes=("image/png; q=1",))
    assert is_taken(output_modes(draw), accepted) is taken


@clause("A2A-19")
def test_a_skill_says_which_files_it_takes() -> None:
    picture = Part.data(b"1", media_type="image/png")
    link = Part.link("https://a.example/b", media_type="image/gif")
    words = (Part.text("x"), Part.value({}))
    skill = Capability("a.b", "", {}, {}, input_modes=("text/plain", "image/png"))
    assert takes_files(input_modes(skill), (*words, picture))
    assert not takes_files(input_modes(skill), (*words, picture, link))
    assert not takes_files(input_modes(Capability("a.b", "", {}, {})), [picture])
    files = Capability("a.b", "", {"properties": {"files": {}}}, {})
    assert takes_files(input_modes(files), (picture, link))


def test_files_in_the_output_may_be_of_any_type() -> None:
    schema = {"type": "object", "properties": {"parts": {"type": "array"}}}
    found = output_modes(Capability("a.b", "", {}, schema))
    assert found == ("application/json", "text/plain", "application/octet-stream")


@clause("A2A-5", "A2A-19")
def test_json_goes_as_text_to_who_takes_only_that() -> None:
    parts = (Part.value({"n": 9007199254740993}), Part.data(b"1"))
    artifact = Artifact(id="a", parts=parts)
    task = A2aTask(id="t", context="c", state="completed", artifacts=(artifact,))
    change = ArtifactUpdate(task="t", context="c", artifact=artifact)
    for update in (task, change):
        assert fit(update, []) is update
        assert fit(update, ["application/json", "text/plain"]) is update
        assert fit(update, ["image/png"]) is update
    told = fit(change, ["text/plain"])
    assert isinstance(told, ArtifactUpdate)
    assert told.artifact.parts == (Part.text('{"n": 9007199254740993}'), parts[1])
    whole = fit(task, ["text"])
    assert isinstance(whole, A2aTask)
    assert whole.artifacts[0].parts == told.artifact.parts
    status = StatusUpdate(task="t", context="c", state="working")
    assert fit(status, ["text"]) is status
