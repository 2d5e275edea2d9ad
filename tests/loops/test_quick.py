"""The quick run has every pure folder, and nothing but pure tests."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.loops.guard import NotPure, refusing
from tests.loops.quick import OTHERS, PURE, TESTS, is_pure


def folders() -> set[str]:
    found = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}
    return {"" if path == Path() else path.as_posix() for path in found}


def test_every_folder_of_tests_is_in_one_of_the_tables() -> None:
    assert folders() == PURE.keys() | OTHERS
    assert not PURE.keys() & OTHERS


def test_files_that_are_left_out_exist() -> None:
    left_out = [TESTS / one / f"{name}.py" for one in PURE for name in PURE[one]]
    assert [path for path in left_out if not path.exists()] == []


def test_folders_and_files_are_told_apart() -> None:
    assert is_pure(TESTS)
    assert is_pure(TESTS / "anp")
    assert is_pure(TESTS / "anp" / "wire" / "test_frames.py")
    assert is_pure(TESTS / "test_clauses.py")
    assert not is_pure(TESTS / "e2e")
    assert not is_pure(TESTS / "e2e" / "test_two_daemons.py")
    assert not is_pure(TESTS / "cache" / "test_kill.py")


def test_a_socket_is_refused() -> None:
    with refusing(), socket.socket() as one:
        with pytest.raises(NotPure, match="binds a socket"):
            one.bind(("127.0.0.1", 0))
        with pytest.raises(NotPure, match="connects a socket"):
            one.connect(("127.0.0.1", 9))
        with pytest.raises(NotPure, match="looks up a host"):
            socket.getaddrinfo("localhost", 9)


def test_a_process_is_refused() -> None:
    with refusing():
        with pytest.raises(NotPure, match="starts a process"):
            subprocess.run([sys.executable, "--version"], check=True)
        with pytest.raises(NotPure, match="forks"):
            os.fork()


def test_an_event_loop_is_not_refused() -> None:
    with refusing():
        assert asyncio.run(asyncio.sleep(0, result=3)) == 3


def test_what_is_refused_is_no_error_that_code_expects() -> None:
    assert not issubclass(NotPure, Exception)


def test_after_the_test_nothing_is_refused() -> None:
    with socket.socket() as one, pytest.raises(NotPure), refusing():
        one.bind(("127.0.0.1", 0))
