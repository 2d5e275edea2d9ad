"""A careful reader as the model: recorded once at the desk, replayed here.

`python -m tests.desk.record` makes a recording anew when a prompt has changed.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest

from anp.errors import EXIT_CODES, ErrorKind
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
from tests.desk.stage import ROOT, Stage, differences, stage
from tests.e2e.daemons import Anpd
from tests.e2e.owner import owner_api

WORKING = [name for name, scene in SCENES.items() if scene.steps]


def rows_of(scene: Scene) -> list[Row]:
    """Return the recording of a scene."""
    return read_cassette(CASSETTES / f"{scene.name}.jsonl")


async def check_spend(played: Stage, asked: dict[str, list[Any]]) -> None:
    """Check that both daemons count what the endpoint saw, as `anpd spend` asks."""
    for side, daemon in (
        (Sides.REQUESTER, played.caller),
        (Sides.PROVIDER, played.provider),
    ):
        async with owner_api(daemon) as client:
            said = (await client.get("/v1/spend", params={"days": 1})).json()
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


@pytest.mark.slow
def test_spend_on_the_command_line_agrees_with_the_endpoint(tmp_path: Path) -> None:
    scene = SCENES["units-both"]
    rows = rows_of(scene)
    caller, provider = Anpd(tmp_path / "caller"), Anpd(tmp_path / "provider")
    with endpoint(replayed(rows)) as model:
        for side, daemon in ((Sides.REQUESTER, caller), (Sides.PROVIDER, provider)):
            daemon.home.mkdir(mode=0o700)
            (daemon.home / "anpd.toml").write_text(
                f'[llm]\nmodel = "desk"\nbase_url = "{model.url(side)}"\n'
                "[negotiation]\napproval_wait = 0\n"
            )
        agent = f"tests/desk/agents/{scene.agent}.py"
        expose = [word for one in scene.expose for word in ("--expose", one)]
        given = f"--name={scene.agent}"
        provider.ok("attach", "python", agent, given, *expose, cwd=ROOT)
        schemas = []
        for option, schema in (
            ("--input-schema", scene.need.input_schema),
            ("--output-schema", scene.need.output_schema),
        ):
            file = tmp_path / f"schema{option}.json"
            file.write_text(json.dumps(schema))
            schemas += [option, str(file)]
        with provider.up(), caller.up():
            # The need names no function, so the provider's owner is asked once.
            first = caller.run(
                *("call", provider.address, scene.need.requirement, "--json"),
                *("--data", json.dumps(scene.steps[0].arguments), *schemas),
            )
            assert first.code == EXIT_CODES[ErrorKind.APPROVAL_PENDING]
            (waits,) = provider.ok("approvals", "list", "--json").json()["negotiations"]
            provider.ok("approvals", "accept", waits["id"])
            for step in scene.steps:
                called = caller.ok(
                    *("call", provider.address, scene.need.requirement, "--json"),
                    *("--data", json.dumps(step.arguments), *schemas),
                )
                assert differences(step.expected, called.json()["output"]) == []
            for side, daemon in ((Sides.REQUESTER, caller), (Sides.PROVIDER, provider)):
                total = daemon.ok("spend", "--json").json()["total"]
                assert total["calls"] == len(model.asked.get(side, []))
    assert model.calls == len(rows)


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
