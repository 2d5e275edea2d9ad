"""A careful reader as the model: recorded once at the desk, replayed here.

`python -m tests.desk.record` makes a recording anew when a prompt has changed.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.desk.cassette import (
    CASSETTES,
    NotRecorded,
    Row,
    endpoint,
    fingerprint,
    read_cassette,
    replayed,
)
from tests.desk.scenes import SCENES, Scene, Sides
from tests.desk.stage import Stage, differences, stage
from tests.e2e.daemons import Ended

WORKING = [name for name, scene in SCENES.items() if scene.steps]


def rows_of(scene: Scene) -> list[Row]:
    """Return the recording of a scene."""
    return read_cassette(CASSETTES / f"{scene.name}.jsonl")


async def spend(home: Path) -> dict[str, Any]:
    """Return what `anpd spend` says about a home whose daemon runs."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "anp", "--home", str(home), "spend", "--json"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    ended = Ended(process.returncode or 0, out.decode(), err.decode())
    assert ended.code == 0, ended.stderr
    found: dict[str, Any] = ended.json()
    return found


async def check_spend(played: Stage, asked: dict[str, list[Any]]) -> None:
    """Check that both daemons counted what the endpoint saw."""
    for side, daemon in (
        (Sides.REQUESTER, played.caller),
        (Sides.PROVIDER, played.provider),
    ):
        said = await spend(daemon.home.path)
        assert said["total"]["calls"] == len(asked.get(side, []))


@pytest.mark.parametrize("name", SCENES)
async def test_a_recorded_scene_ends_as_it_should(name: str, tmp_path: Path) -> None:
    scene = SCENES[name]
    rows = rows_of(scene)
    with endpoint(replayed(rows)) as model:
        async with stage(scene, tmp_path, model) as played:
            assert await played.play() == []
            # The first call was all: every other one ran through plain code.
            assert model.failures == []
            assert model.calls == len(rows) <= 6
            await check_spend(played, model.asked)
        said = [
            fingerprint(request) for side in model.asked.values() for request in side
        ]
    assert sorted(said) == sorted(row.fingerprint for row in rows)


def test_first_contact_costs_three_model_calls_at_most_in_the_median() -> None:
    calls = [len(rows_of(SCENES[name])) for name in WORKING]
    assert statistics.median(calls) <= 3
    assert max(calls) <= 6


def test_every_recording_belongs_to_a_scene_and_says_how_it_was_made() -> None:
    assert {path.stem for path in CASSETTES.glob("*.jsonl")} <= SCENES.keys()
    for path in CASSETTES.glob("*.jsonl"):
        for row in read_cassette(path):
            assert row.sound, path.name
            assert row.made, path.name


def test_a_changed_prompt_is_not_on_any_cassette() -> None:
    rows = rows_of(SCENES["units-both"])
    changed = json.loads(json.dumps(rows[0].request))
    changed["messages"][0]["content"] += " "
    with pytest.raises(NotRecorded):
        replayed(rows)(changed)
    changed_row = Row(rows[0].fingerprint, changed, rows[0].message, "")
    assert not changed_row.sound


def test_a_recording_holds_nothing_that_differs_between_two_machines() -> None:
    for path in CASSETTES.glob("*.jsonl"):
        text = path.read_text("utf-8")
        assert "did:" not in text, path.name
        assert "127.0.0.1" not in text, path.name
        assert str(Path.home()) not in text, path.name


@pytest.mark.parametrize(
    ("expected", "output", "same"),
    [
        ({"a": 1.0}, {"a": 1}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
    ],
)
def test_outputs_are_compared_by_value(expected: Any, output: Any, same: bool) -> None:
    assert (differences(expected, output) == []) is same
