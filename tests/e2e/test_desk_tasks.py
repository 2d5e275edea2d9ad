"""The evaluation's tasks with recorded answers: nothing wrong, and nothing invented.

`python -m tests.desk.evaluate` plays and records them.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path

import jsonschema
import pytest

from anp.sidecar.attachments import AttachmentSpec
from tests.desk.cassette import read_cassette, replayed
from tests.desk.evaluate import RECORDED, from_folder
from tests.desk.fakes import providers
from tests.desk.rounds import End, Round, frames_kept, play, table
from tests.desk.tasks.catalogue import TASKS

FREE = [name for name in TASKS if name.endswith("-by-name")]
WITH_MODEL = sorted(path.stem for path in RECORDED.glob("*.jsonl"))


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_of_one_piece(name: str) -> None:
    task = TASKS[name]
    assert len(task.cases) == 1 if task.lacking else len(task.cases) >= 4
    for case in task.cases:
        if task.input is not None:
            jsonschema.validate(case.arguments, task.input)
        if task.output is not None and isinstance(case.expected, dict):
            jsonschema.validate(case.expected, task.output)
    with providers(task) as attached:
        assert [one.name for one in attached] == list(
            dict.fromkeys(tool.agent for tool in task.tools)
        )
        assert all(isinstance(one, AttachmentSpec) for one in attached)


def test_enough_tasks_can_be_served_and_enough_cannot() -> None:
    assert sum(not task.lacking for task in TASKS.values()) >= 24
    assert sum(bool(task.lacking) for task in TASKS.values()) >= 8


@pytest.mark.parametrize("name", FREE)
async def test_a_need_that_names_its_tool_is_served_without_a_model(name: str) -> None:
    assert (await play(TASKS[name], None)).end is End.SERVED


@pytest.mark.parametrize("name", [name for name in TASKS if TASKS[name].lacking])
async def test_rules_refuse_what_nothing_can_serve(name: str) -> None:
    for task in (TASKS[name], TASKS[name].naming_its_tool()):
        assert (await play(task, None)).end is End.REFUSED


@pytest.mark.parametrize("name", WITH_MODEL)
async def test_a_recorded_task_is_neither_wrong_nor_invented(name: str) -> None:
    rows = read_cassette(RECORDED / f"{name}.jsonl")
    assert all(row.sound and row.made for row in rows)
    with frames_kept():
        played = await play(TASKS[name], replayed(rows))
    good = End.REFUSED if TASKS[name].lacking else End.SERVED
    assert played.end is good, played.notes
    assert played.calls + played.later_calls == len(rows)


def test_every_recording_belongs_to_a_task() -> None:
    assert set(WITH_MODEL) <= TASKS.keys()


def test_a_reader_finds_a_question_and_its_answer_is_taken_once(tmp_path: Path) -> None:
    ask = from_folder(tmp_path / "07")
    request = {"messages": [{"role": "user", "content": "Which?"}]}
    timer = threading.Timer(
        0.2, (tmp_path / "07" / "001.answer.json").write_text, ('{"no": 1}\n',)
    )
    timer.start()
    assert ask(request) == {"content": '{"no": 1}'}
    assert "Which?" in (tmp_path / "07" / "001.question.md").read_text()
    # Played again after a stop: the same question has its answer already.
    assert from_folder(tmp_path / "07")(request) == {"content": '{"no": 1}'}


def test_the_worst_request_decides_how_a_task_ended() -> None:
    round_ = Round("one", servable=True)
    round_.add(End.INVENTED, "a")
    round_.add(End.UNSERVED, "b")
    assert round_.end is End.INVENTED
    assert Round.from_json(json.loads(json.dumps(round_.as_json()))) == round_
    assert "served of what can be served: 0/1" in table([round_])
