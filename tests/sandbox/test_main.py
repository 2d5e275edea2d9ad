"""`python -m sandbox run`: how anybody tries a source in a worker."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sandbox.__main__ import main

SOURCE = """
def twice(value):
    return value + value


def join(first, second):
    return [first, second]


def ask(name):
    try:
        answer = yield call(name, {"x": 1})
    except CapabilityError as exc:
        return {"code": exc.code}
    return answer


def spin():
    while True:
        pass
"""


def run(
    capsys: pytest.CaptureFixture[str], folder: Path, *args: str, source: str = SOURCE
) -> tuple[int, Any]:
    """Run the command in this process; return its exit code and what it printed."""
    file = folder / "half.py"
    file.write_text(source)
    code = main(["run", str(file), *args])
    printed = capsys.readouterr().out
    return code, json.loads(printed) if printed else None


@pytest.mark.parametrize(
    ("args", "value"),
    [
        (["twice", "3"], 6),
        (["twice", '"é"'], "éé"),
        (["twice", '{"base64": "AAE="}'], {"base64": "AAEAAQ=="}),
        (["twice", "[[1]]"], [1, 1]),
        (["join", '[{"a": null}, 1.5]'], [{"a": None}, 1.5]),
        (["ask", '"up"'], {"code": 404}),
        (["ask", '"up"', "--answer", 'up={"z": 1}'], {"z": 1}),
    ],
)
def test_a_value_is_printed_as_json(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, args: list[str], value: Any
) -> None:
    assert run(capsys, tmp_path, *args) == (0, {"outcome": "ok", "value": value})


def test_what_a_function_prints_comes_with_the_outcome(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    source = "print('loaded')\ndef f():\n    print('called\\x1b[2J', 1)\n    return 2\n"
    code, report = run(capsys, tmp_path, "f", source=source)
    assert (code, report["value"]) == (0, 2)
    assert report["log"] == "loaded\ncalled [2J 1\n"


def test_another_outcome_is_reported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, report = run(capsys, tmp_path, "spin", "--deadline", "0.2")
    assert (code, report["outcome"], report["limit"]) == (1, "timeout", 0.2)
    code, report = run(capsys, tmp_path, "join", "1")
    assert (code, report["outcome"], report["function"]) == (1, "error", "join")
    code, report = run(capsys, tmp_path, "f", source="def f():\n    import os\n")
    assert (code, report["outcome"], report["stage"]) == (1, "rejected", "load")
    assert report["line"] == 2
    assert "os" in report["reason"]


def test_without_the_language_layer_the_kernel_still_refuses(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    source = "def f(path):\n    return open(path).read()\n"
    off = ("--language-layer", "off")
    code, report = run(capsys, tmp_path, "f", '"/etc/hosts"', *off, source=source)
    assert (code, report["outcome"]) == (1, "error")
    assert "PermissionError" in report["reason"]
    source = "import os\ndef f():\n    os.fork()\n"
    code, report = run(capsys, tmp_path, "f", *off, source=source)
    assert (code, report["outcome"]) == (1, "forbidden_syscall")


@pytest.mark.parametrize(
    "args",
    [["twice", "{"], ["ask", "1", "--answer", "up"], ["twice", '{"base64":"_"}']],
)
def test_arguments_that_make_no_sense_are_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, args: list[str]
) -> None:
    (tmp_path / "half.py").write_text(SOURCE)
    assert main(["run", str(tmp_path / "half.py"), *args]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert main(["run", str(tmp_path / "none.py"), "f"]) == 2


def test_it_is_a_command(tmp_path: Path) -> None:
    (tmp_path / "half.py").write_text(SOURCE)
    command = [sys.executable, "-m", "sandbox", "run", str(tmp_path / "half.py")]
    done = subprocess.run(
        [*command, "twice", "4"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert json.loads(done.stdout) == {"outcome": "ok", "value": 8}
