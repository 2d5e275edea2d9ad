"""The words of the command line are those of its files, and are loaded when needed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest

from anp.cli.app import app
from anp.cli.call import CallLine, quick_call
from anp.cli.examples import EXAMPLES, example_of
from anp.cli.grammar import Commands
from anp.cli.output import terminal_width
from anp.cli.words import WORDS
from tests.command_lines import problem_of


def commands_of(file: str) -> dict[str, str]:
    """Return the words that a file adds, with the first sentences of their help."""
    app = Commands()
    import_module(f"anp.cli.commands.{file}").register(app)
    return {name: one.get_short_help_str(500) for name, one in app.made.items()}


def test_the_table_has_the_words_of_all_files_with_their_help() -> None:
    found: dict[str, str] = {}
    for file in {word.file for word in WORDS.values()}:
        found |= commands_of(file)
    assert found == {name: word.summary for name, word in WORDS.items()}


def loaded_by(*words: str) -> set[str]:
    """Return the modules that a command line has loaded when it ends."""
    script = (
        "import sys\nfrom anp.__main__ import main\nsys.argv[1:] = sys.argv[2:]\n"
        "try:\n    main()\nexcept SystemExit:\n    print('LOADED', *sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, "-", *words], capture_output=True, text=True
    )
    return set(ran.stdout.rpartition("LOADED ")[2].split())


def test_a_call_loads_no_library_but_the_standard_one(tmp_path: object) -> None:
    home = ("--home", f"{tmp_path}/none")
    loaded = loaded_by(*home, "call", "bob", "double", "-d", "{}", "--json")
    assert "anp.cli.client" in loaded
    assert not {"click", "pydantic", "httpx2", "asyncio", "cryptography"} & loaded
    # A form that is not a usual one is read by the whole command line.
    assert "click" in loaded_by(*home, "call", "bob", "double", "--data={}")


def test_help_loads_no_command() -> None:
    loaded = loaded_by("--help")
    assert "click" in loaded
    assert not any(name.startswith("anp.cli.commands") for name in loaded)


@pytest.mark.parametrize("words", [(), ("peers",), ("peers", "list"), ("call",)])
def test_h_is_help_everywhere(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    from anp.cli.app import run

    assert run([*words, "-h"]) == 0
    assert capsys.readouterr().out.startswith(" ".join(["Usage: anpd", *words]))


def test_wide_may_stand_behind_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from anp.cli.app import run

    monkeypatch.setattr("anp.cli.output._is_wide", False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert terminal_width() is not None
    assert run(["--home", str(tmp_path), "attachments", "list", "--wide"]) == 0
    assert terminal_width() is None


LINES = (
    ("call", "bob", "double"),
    ("call", "bob", "double", "-d", '{"a": 1}', "--json"),
    ("--home", "/h", "call", "bob", "double", "--timeout", "2.5"),
    ("call", "--find", "double", "--trust-first-use"),
    ("call", "-d", "-", "bob", "--mode", "protocol", "double"),
    ("call", "bob", "double", "--protocol", "urn:x:1", "--idempotency-key", "k"),
    ("call", "bob", "double", "--capability", "d", "--data", "--json"),
)


@pytest.mark.parametrize("words", LINES, ids=" ".join)
def test_both_ways_read_a_line_alike(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[str | None, bool, CallLine]] = []

    def keep(settings: object, line: CallLine) -> None:
        made.append((settings.home, settings.json, line))  # type: ignore[attr-defined]

    monkeypatch.setattr("anp.cli.call.make_call", keep)
    monkeypatch.setattr("anp.cli.commands.daemon.make_call", keep)
    from anp.cli.app import run

    assert run(words) == 0
    assert quick_call(words) == 0
    assert made[0] == made[1]


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("call", "--help"),
        ("call", "a", "b", "c"),
        ("call", "a", "b", "--timeout", "soon"),
        ("call", "a", "b", "--timeout"),
        ("call", "a", "b", "--timeout=3"),
        ("call", "a", "b", "--nonsense"),
        ("call", "a", "b", "--input-schema", "f"),
        ("call", "a", "--", "b"),
        ("--debug", "call", "a", "b"),
        ("calls", "list"),
        ("--home",),
    ],
    ids=" ".join,
)
def test_everything_else_is_left_to_the_whole_command_line(
    words: tuple[str, ...],
) -> None:
    assert quick_call(words) is None


def leaves(command: click.Command, *words: str) -> Iterator[tuple[str, click.Command]]:
    """Give every command that has none below it, with its words."""
    below = getattr(command, "commands", {})
    for name in below:
        yield from leaves(below[name], *words, name)
    if not below:
        yield " ".join(words), command


def test_every_command_shows_an_example_that_fits_it() -> None:
    found = dict(leaves(app))
    assert set(EXAMPLES) <= set(found)
    for words, command in found.items():
        line = example_of(f"anpd {words}")
        given = shlex.split(line)[1:]
        assert problem_of(given) is None, line
        needed = [one for one in command.params if one.required]
        assert not needed or words in EXAMPLES, line
        context = click.Context(command, info_name=f"anpd {words}")
        assert command.get_help(context).endswith(f"Example: {line}")
        said = (command.help or "").split("\n")[0]
        assert re.match(r"[A-Z].*[.:]$", said), (words, said)
