"""Whatever fails becomes one line, a problem document and the exit code of its kind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from anp.cli.app import run
from anp.cli.output import Settings, guarded, print_json
from anp.errors import EXIT_CODES, AnpError, CallError, ConfigError, ErrorKind
from cache.errors import StoreUnavailable

Output = pytest.CaptureFixture[str]


def failing(exc: BaseException) -> Callable[[], int]:
    def work() -> int:
        raise exc

    return work


@pytest.mark.parametrize("kind", list(ErrorKind))
def test_each_kind_of_call_error_has_its_exit_code(kind: ErrorKind) -> None:
    assert guarded(Settings(), failing(CallError(kind, "x"))) == EXIT_CODES[kind]


@pytest.mark.parametrize(
    ("exc", "code"),
    [
        (ConfigError("x"), 3),
        (AnpError("x"), 1),
        (StoreUnavailable("x"), 13),
        (OSError(28, "No space left"), 13),
        (RuntimeError("x"), 1),
        (KeyboardInterrupt(), 130),
    ],
)
def test_other_errors_have_theirs(exc: BaseException, code: int) -> None:
    assert guarded(Settings(), failing(exc)) == code


def test_an_error_is_one_line_in_which_a_terminal_sees_no_control(
    capsys: Output,
) -> None:
    hostile = "no\nthanks \x1b[2J\u202e"
    guarded(Settings(), failing(CallError(ErrorKind.NEGOTIATION_REJECTED, hostile)))
    assert capsys.readouterr().err == "anpd: no thanks <1b>[2J<202e>\n"


def test_with_json_the_error_is_a_problem_document_on_stdout(capsys: Output) -> None:
    error = CallError(ErrorKind.TIMEOUT, "too late", may_have_run=True)
    assert guarded(Settings(json=True), failing(error)) == 9
    out, err = capsys.readouterr()
    assert err == "anpd: too late (it may have run)\n"
    assert json.loads(out) == {
        "type": "urn:anpd:error:timeout",
        "title": "timeout",
        "detail": "too late",
        "kind": "timeout",
        "may_have_run": True,
    }


def test_debug_lets_the_traceback_through() -> None:
    with pytest.raises(RuntimeError):
        guarded(Settings(debug=True), failing(RuntimeError("x")))


@pytest.mark.parametrize("text", ["\x7f", "\x9b", "\u202e", "\u200b", "é", "\ud83d"])
def test_json_for_a_terminal_is_the_same_value(text: str, capsys: Output) -> None:
    print_json({"a": text})
    out = capsys.readouterr().out
    assert json.loads(out) == {"a": text}
    assert all(c.isprintable() or c == "\n" for c in out)


@pytest.mark.parametrize(
    "words",
    [
        ["nope"],
        ["call"],
        ["call", "x", "y", "--nope"],
        ["up", "--port", "x"],
        ["attach", "mcp"],
        ["attach", "mcp", "--nope", "--", "cmd"],
        ["attach", "mcp", "--name", "a b", "--", "cmd"],
        ["attach", "mcp", "--env", "x", "--", "cmd"],
        ["init", "--method", "did:nope"],
        ["call", "x", "y", "-d", "{"],
        ["call", "x", "y", "-d", "NaN"],
        ["call", "x", "y", "-d", "[" * 100_000],
        ["call", "x", "y", "-d", "@/nonexistent"],
        ["call", "x", "y", "--input-schema", "/nonexistent"],
    ],
    ids=lambda words: " ".join(words)[:40],
)
def test_a_wrong_command_line_is_one_line_and_two(
    words: list[str], tmp_path: Path, capsys: Output
) -> None:
    assert run(["--home", str(tmp_path / "home"), *words]) == 2
    err = capsys.readouterr().err
    assert err.startswith("anpd: ")
    assert err.count("\n") == 1
    assert not (tmp_path / "home").exists() or not list(tmp_path.rglob("*.json"))


def test_a_service_that_is_away_is_said_before_a_name_is_asked_for(
    tmp_path: Path, capsys: Output
) -> None:
    words = ["attach", "http", "http://127.0.0.1:1/"]
    assert run(["--home", str(tmp_path / "home"), *words]) == 3
    complained = capsys.readouterr().err
    assert "nothing listens there (connection refused); is it up?" in complained
    assert complained.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        ["call", "ws://127.0.0.1:1/", "a task"],
        ["capabilities", "list"],
        ["protocols", "show", "ab", "--text"],
        ["negotiations", "list"],
        ["peers", "block", "x"],
    ],
    ids=lambda words: words[0],
)
def test_without_a_daemon_it_is_four_and_the_command_to_type(
    words: list[str], tmp_path: Path, capsys: Output
) -> None:
    assert run(["--home", str(tmp_path), *words, "--json"]) == 4
    out, err = capsys.readouterr()
    assert f"anpd --home {tmp_path} up" in err
    assert json.loads(out)["kind"] == "daemon_unreachable"


def test_a_broken_configuration_is_three_and_says_config_once(
    tmp_path: Path, capsys: Output
) -> None:
    (tmp_path / "anpd.toml").write_text("[listen]\nprot = 1\n")
    assert run(["--home", str(tmp_path), "up"]) == 3
    err = capsys.readouterr().err
    assert err.count("config:") == 1
    assert "did you mean listen.port?" in err
