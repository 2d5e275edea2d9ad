"""The questions of `anpd init`, and completion in a shell."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tomllib
from pathlib import Path

import httpx
import pytest

from anp.cli.app import app
from anp.cli.completion import install_completion, shell_of
from anp.cli.questions import QUESTIONS, ask_all, with_values
from anp.errors import CallError
from anp.sidecar.config.load import load_config
from anp.sidecar.config.schema import default_config_text
from anp.sidecar.home.home import Home
from tests.anp.cli.test_commands import FakeApi, Output, anpd, api, home

__all__ = ["api", "home"]  # Fixtures, which pytest finds by name.


def test_every_answer_is_a_setting_and_every_default_its_default(
    tmp_path: Path,
) -> None:
    given = iter(["9000", "nobody", "listed", "always", "gpt-5-mini"])
    answers = ask_all(lambda text, default: next(given))
    assert list(answers) == [one.setting for one in QUESTIONS]
    home = Home(tmp_path)
    home.config_file.write_text(with_values(default_config_text(), answers), "utf-8")
    found = load_config(home, home_given=True, environ={})
    assert (found.listen.port, found.policy.peers) == (9000, "listed")
    assert (found.negotiation.approve, found.llm.model) == ("always", "gpt-5-mini")


def test_empty_answers_leave_the_configuration_as_it_is() -> None:
    text = default_config_text()
    assert with_values(text, ask_all(lambda text, default: default)) == text
    assert set(tomllib.loads(text)) >= {"listen", "llm"}


def test_at_a_terminal_init_asks_four_questions(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    words = ["--home", str(tmp_path / "home"), "init"]
    with subprocess.Popen(
        [sys.executable, "-m", "anp", *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        os.write(ours, b"9000\n\n\n\n")
        said = b""
        while True:
            try:
                said += os.read(ours, 4096)
            except OSError:
                break
    os.close(ours)
    assert process.returncode == 0
    assert b"1/4" in said
    assert b"4/4" in said
    found = tomllib.loads((tmp_path / "home" / "anpd.toml").read_text())
    assert found["listen"] == {"port": 9000}


def test_without_a_terminal_init_asks_nothing(tmp_path: Path, capsys: Output) -> None:
    assert anpd(Home(tmp_path / "home"), "init") == 0
    assert "1/4" not in "".join(capsys.readouterr())


def completed(
    words: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> list[str]:
    """Return what the shell would offer for the last of these words."""
    line = f"anpd --home {home} {words}"
    monkeypatch.setenv("_ANPD_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
    with pytest.raises(SystemExit):
        app.main([], prog_name="anpd")
    out, err = capsys.readouterr()
    assert err == ""
    return [word.removeprefix("plain,") for word in out.split()]


PEERS = {"peers": [{"did": "did:key:z1", "names": ["bob"]}], "unmet": []}


def test_peers_are_completed_by_the_daemon_that_runs(
    home: Home,
    api: FakeApi,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Output,
) -> None:
    api.answers["/v1/peers"] = httpx.Response(200, json=PEERS)
    assert completed("peers show b", home.path, monkeypatch, capsys) == ["bob"]
    assert completed("peers show x", home.path, monkeypatch, capsys) == []


def test_completion_is_silent_without_a_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    for words in ("tasks show ", "peers show ", "call ", "expose ", "decide "):
        assert completed(words, tmp_path, monkeypatch, capsys) == []


def test_the_completion_is_installed_once(tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text("alias ll='ls -l'")
    for _ in range(2):
        path = install_completion(app, "bash", tmp_path)
    assert "_ANPD_COMPLETE=bash_complete" in path.read_text("utf-8")
    lines = (tmp_path / ".bashrc").read_text("utf-8").splitlines()
    assert lines == ["alias ll='ls -l'", "source ~/.bash_completions/anpd.sh"]
    with pytest.raises(CallError, match="bash, zsh, fish can"):
        shell_of({"SHELL": "/bin/tcsh"})
