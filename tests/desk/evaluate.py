"""Play the tasks of the evaluation: `python -m tests.desk.evaluate [TASK …]`.

Without options the recordings are replayed. `--rules` gives neither side a model,
`--model URL` asks an OpenAI-compatible endpoint, and `--readers FOLDER` lays each
question into `FOLDER/NN/` as `001.question.md`, where a reader answers with a file
`001.answer.json`; NN is the task's number, and each may have a reader of its own. With
`--state FOLDER` what was played is kept there and not played again, so that the command
can be stopped at any time. `--keep` makes recordings of the tasks that ended well.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from tests.desk.cassette import (
    CASSETTES,
    DESK_TIMEOUT,
    Ask,
    Row,
    posted,
    read_cassette,
    recorded,
    replayed,
    write_cassette,
)
from tests.desk.rounds import GOOD, Round, frames_kept, play, table
from tests.desk.tasks.catalogue import TASKS
from tests.desk.tasks.task import Task

Json = dict[str, Any]

RECORDED: Final = CASSETTES / "tasks"
"Recordings of tasks, one file for each."


def from_folder(folder: Path) -> Ask:
    """Answer by a reader who finds each question in `folder` as a file."""
    folder.mkdir(parents=True, exist_ok=True)

    def ask(request: Json) -> Json:
        text = _readable(request)
        # After a restart the same question may stand there already.
        for path in sorted(folder.glob("*.question.md")):
            if path.read_text("utf-8") == text:
                break
        else:
            number = 1 + len(list(folder.glob("*.question.md")))
            path = folder / f"{number:03}.question.md"
            path.write_text(text, "utf-8")
        answer = path.with_name(path.name.replace("question.md", "answer.json"))
        deadline = time.monotonic() + DESK_TIMEOUT
        while not answer.exists():
            if time.monotonic() > deadline:
                raise TimeoutError(f"nobody answered {folder.name}/{answer.name}")
            time.sleep(0.1)
        return {"content": answer.read_text("utf-8").strip()}

    return ask


def _readable(request: Json) -> str:
    parts = [f"## {one['role']}\n{one['content']}" for one in request["messages"]]
    for key in ("response_format", "tools"):
        if request.get(key):
            shown = json.dumps(request[key], ensure_ascii=False, indent=1)
            parts.append(f"## {key}\n{shown}")
    return "\n\n".join(parts) + "\n"


async def _played(task: Task, options: argparse.Namespace, state: Path) -> Round:
    result, rows = state / f"{task.name}.json", state / f"{task.name}.jsonl"
    if result.exists():
        return Round.from_json(json.loads(result.read_text("utf-8")))
    kept: list[Row] = []
    known = read_cassette(rows)
    number = f"{1 + list(TASKS).index(task.name):02}"
    ask: Ask | None = None
    if options.readers:
        ask = from_folder(options.readers / number)
    elif options.model:
        ask = posted(options.model, options.fields)
    if ask is not None:
        ask = recorded(ask, known, options.made, kept, rows)
    elif not options.rules:
        ask = replayed(read_cassette(RECORDED / f"{task.name}.jsonl"))
    round_ = await play(task.naming_its_tool() if options.named else task, ask)
    if options.readers:
        (options.readers / number).mkdir(exist_ok=True, parents=True)
        (options.readers / number / "finished").touch()
    result.write_text(json.dumps(round_.as_json(), ensure_ascii=False), "utf-8")
    if options.keep and round_.end in GOOD and kept:
        RECORDED.mkdir(exist_ok=True)
        write_cassette(RECORDED / f"{task.name}.jsonl", kept)
    print(table([round_]).splitlines()[0], flush=True)
    return round_


async def _all(tasks: list[Task], options: argparse.Namespace) -> list[Round]:
    with tempfile.TemporaryDirectory() as folder, frames_kept():
        state = options.state or Path(folder)
        state.mkdir(parents=True, exist_ok=True)
        places = asyncio.Semaphore(options.at_once)

        async def one(task: Task) -> Round:
            async with places:
                return await _played(task, options, state)

        # Each in a task of its own: what one sends is kept apart from the others.
        return list(await asyncio.gather(*map(one, tasks)))


def _chosen(names: list[str]) -> list[Task]:
    tasks = list(TASKS.values())
    chosen = []
    for name in names:
        first, _, last = name.partition("..")
        if first.isdigit():
            chosen += tasks[int(first) - 1 : int(last or first)]
        else:
            chosen.append(TASKS[name])
    return chosen or tasks


def main() -> int:
    """Play the named tasks, or all; report how each ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", help="names, numbers, or such as 1..8")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--rules", action="store_true", help="no model at all")
    source.add_argument("--model", metavar="URL", help="base URL of an endpoint")
    source.add_argument("--readers", type=Path, metavar="FOLDER")
    parser.add_argument("--named", action="store_true", help="needs name their tool")
    parser.add_argument("--state", type=Path, metavar="FOLDER")
    parser.add_argument(
        "--fields", type=json.loads, metavar="JSON", help="of questions"
    )
    parser.add_argument("--at-once", type=int, default=1, metavar="N")
    parser.add_argument("--keep", action="store_true", help="make recordings")
    parser.add_argument("--made", default="by a reader at the desk", metavar="HOW")
    parser.add_argument("--list", action="store_true", help="only number the tasks")
    options = parser.parse_args()
    if options.list:
        for number, task in enumerate(TASKS.values(), 1):
            print(f"{number:02} {task.name:20} {task.lacking or 'can be served'}")
        return 0
    rounds = asyncio.run(_all(_chosen(options.tasks), options))
    print(table(rounds))
    return 0 if all(one.end in GOOD for one in rounds) else 1


if __name__ == "__main__":
    sys.exit(main())
