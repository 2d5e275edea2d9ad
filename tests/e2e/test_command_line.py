"""A failure on the command line ends in one line and the documented code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.daemons import Anpd, Ended


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Anpd]:
    with Anpd(tmp_path / "home").up() as running:
        yield running


def check(ended: Ended, code: int, *words: str) -> None:
    """The exit code, one line on stderr, and what it says."""
    assert ended.code == code, ended.stderr
    assert ended.stderr.count("\n") == 1, ended.stderr
    assert ended.stderr.startswith("anpd: ")
    for text in words:
        assert text in ended.stderr


def test_a_peer_that_is_not_there(daemon: Anpd) -> None:
    nobody = "ws://127.0.0.1:9/"
    check(daemon.run("call", nobody, "anything"), 12, nobody, "is its anpd up?")


def test_a_peer_that_is_not_there_but_named_by_its_did(daemon: Anpd) -> None:
    check(daemon.run("call", f"ws://127.0.0.1:9/#{daemon.did}", "x"), 12, "is its anpd")


def test_another_did_than_the_one_that_answers(daemon: Anpd, tmp_path: Path) -> None:
    other = Anpd(tmp_path / "other")
    other.ok("init")
    did = other.ok("identity", "show", "--json").json()["did"]
    with other.up() as caller:
        check(caller.run("call", f"{daemon.url}#{did}", "x"), 5, "another agent")


def test_a_task_nobody_can_serve(daemon: Anpd, tmp_path: Path) -> None:
    with Anpd(tmp_path / "caller").up() as caller:
        ended = caller.run("call", daemon.address, "fold_paper", "-d", '{"a": 1}')
        check(ended, 6, "rejected")


def test_input_that_is_no_json(daemon: Anpd) -> None:
    check(daemon.run("call", daemon.address, "x", "-d", "{bad"), 2, "not JSON")


def test_input_that_is_no_object(daemon: Anpd) -> None:
    check(daemon.run("call", daemon.address, "x", "-d", "[1]"), 2, "JSON object")


def test_a_port_in_use(daemon: Anpd, tmp_path: Path) -> None:
    other = Anpd(tmp_path / "other")
    other.ok("init")
    check(other.run("up", "--port", str(daemon.port)), 13, str(daemon.port), "in use")


def test_a_daemon_in_the_background_says_why_it_does_not_start(
    daemon: Anpd, tmp_path: Path
) -> None:
    other = Anpd(tmp_path / "other")
    ended = other.run("up", "--background", "--port", str(daemon.port))
    check(ended, 13, str(daemon.port), "in use")
    assert other.run("logs").code == 0


def test_a_home_in_use(daemon: Anpd) -> None:
    check(daemon.run("up", "--port", "0"), 13, "another daemon")


def test_a_broken_configuration(tmp_path: Path) -> None:
    broken = Anpd(tmp_path / "home")
    broken.ok("init")
    config = broken.home / "anpd.toml"
    for text, word in (("[listen\n", "TOML"), ("[listn]\nport = 1\n", "listen")):
        config.write_text(text)
        check(broken.run("up"), 3, word, "anpd.toml")


def test_no_daemon(tmp_path: Path) -> None:
    alone = Anpd(tmp_path / "home")
    check(alone.run("call", "ws://127.0.0.1:9/", "x"), 4, "up")


def test_an_unknown_command(tmp_path: Path) -> None:
    check(Anpd(tmp_path / "home").run("dance"), 2, "dance")


@pytest.mark.slow
def test_a_blocked_peer_is_refused_and_can_be_allowed_again(
    daemon: Anpd, tmp_path: Path
) -> None:
    with Anpd(tmp_path / "caller").up() as caller:
        daemon.ok("peers", "block", caller.did)
        call = ("call", daemon.address, "fold_paper")
        check(caller.run(*call), 5, "403")
        daemon.ok("peers", "allow", caller.did)
        check(caller.run(*call), 6)


def test_stop_by_sigterm_ends_well(tmp_path: Path) -> None:
    daemon = Anpd(tmp_path / "home")
    daemon.start()
    assert daemon.stop() == 0
    assert not (daemon.home / "api.json").exists()
    assert "Traceback" not in daemon.log()
