"""docs/model.md names only settings and commands that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from anp.cli.app import run
from anp.sidecar.config.load import load_config
from anp.sidecar.home.home import Home

TEXT = (Path(__file__).parent.parent / "docs" / "model.md").read_text("utf-8")
TABLES = re.findall(r"^```toml\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
COMMANDS = sorted(set(re.findall(r"`(anpd [^`]+)`", TEXT)))
OPTION = re.compile(r"--[a-z-]+")


@pytest.mark.parametrize("table", TABLES)
def test_every_table_of_settings_is_accepted(table: str, tmp_path: Path) -> None:
    (tmp_path / "anpd.toml").write_text(table, "utf-8")
    load_config(Home(tmp_path), home_given=True, environ={})


def test_the_budgets_are_shown_with_their_defaults(tmp_path: Path) -> None:
    shown = [tomllib.loads(table).get("budget") for table in TABLES]
    (budget,) = [one for one in shown if one is not None]
    defaults = load_config(Home(tmp_path), home_given=True, environ={}).budget
    assert budget == {name: getattr(defaults, name) for name in defaults.__slots__}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_option_exists(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = []
    for word in command.split()[1:]:
        # Arguments in a document are in capitals; options end the command's name.
        if not re.fullmatch(r"[a-z-]+", word) or word.startswith("-"):
            break
        words.append(word)
    assert run([*words, "--help"]) == 0
    shown = set(OPTION.findall(capsys.readouterr().out))
    assert set(OPTION.findall(command)) <= shown


def test_the_document_is_short_and_was_read() -> None:
    assert len(TEXT.splitlines()) <= 150
    assert len(TABLES) >= 3
    assert {"anpd spend", "anpd doctor"} <= set(COMMANDS)
