"""The command line when nobody reads its output any more."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("words", [["--help"], ["call", "--help"]])
def test_a_closed_pipe_ends_it_quietly(words: list[str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "anp", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        # Its reader goes away before there is anything to read.
        process.stdout.close()
        told = process.stderr.read()
        assert (process.wait(), told) == (141, b"")
