"""Terminals as a reader of the documents has them, to run what the documents show."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import random
import re
import signal
import socket
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.documents import Block

TIMEOUT = 120.0
"Seconds until a command has to be over, or a daemon ready; generous."

ANYTHING = "…"
"In a shown line: any text. As a whole line: any number of lines."

_DONE = "--done--"
# A busy machine sees the line that tells how long a call has lasted, again and again.
_OVERWRITTEN = re.compile(r"[^\n]*\r")
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def difference(shown: Sequence[str], printed: Sequence[str]) -> str | None:
    """Return how what was printed differs from what is shown, or None.

    Blanks count as one, so that a wider column is no difference.
    """
    wanted = [_words(line) for line in shown if line.strip()]
    got = [_words(line) for line in printed if line.strip()]
    pattern = "".join(
        r"(?:[^\n]*\n)*?"
        if line == ANYTHING
        else ".*?".join(map(re.escape, line.split(ANYTHING))) + r"\n"
        for line in wanted
    )
    if re.fullmatch(pattern, "".join(f"{line}\n" for line in got)):
        return None
    return "shown:\n  {}\nprinted:\n  {}".format("\n  ".join(wanted), "\n  ".join(got))


def _words(line: str) -> str:
    return " ".join(line.split())


class Terminal:
    """One shell whose output goes to a terminal, wide enough that nothing wraps."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._primary, secondary = pty.openpty()
        fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 400, 0, 0))
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env=dict(environ),
            stdin=subprocess.PIPE,
            stdout=secondary,
            stderr=secondary,
            start_new_session=True,
        )
        os.close(secondary)
        self._printed = bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def run(self, command: str) -> tuple[list[str], int]:
        """Run a command; return the lines it printed and its exit code."""
        start = len(self._printed)
        self._type(f"{command}\nprintf '\\n%s %d\\n' {_DONE} $?\n")
        text = self._wait(start, re.compile(rf"^{_DONE} (\d+)\n", re.MULTILINE))
        printed, _, code = text.rpartition(f"{_DONE} ")
        return printed.splitlines(), int(code)

    def leave(self, command: str, shown: Sequence[str]) -> None:
        """Start a command that goes on, and wait until it printed what is shown."""
        start = len(self._printed)
        self._type(f"{command}\nprintf '\\n%s %d\\n' {_DONE} $?\n")
        limit = time.monotonic() + TIMEOUT
        while found := difference(shown, self._since(start).splitlines()):
            assert _DONE not in self._since(start), f"{command} ended\n{found}"
            assert time.monotonic() < limit, f"{command}\n{found}"
            time.sleep(0.05)

    def close(self) -> None:
        """End what runs here, and the shell."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._shell.pid, number)
            # Ends when the last process that holds the terminal is gone.
            self._reader.join(timeout=30)
            if not self._reader.is_alive():
                break
        if self._shell.stdin is not None:
            self._shell.stdin.close()
        self._shell.wait(timeout=30)
        os.close(self._primary)

    def _type(self, text: str) -> None:
        assert self._shell.stdin is not None
        self._shell.stdin.write(text.encode())
        self._shell.stdin.flush()

    def _wait(self, start: int, end: re.Pattern[str]) -> str:
        limit = time.monotonic() + TIMEOUT
        while not (match := end.search(self._since(start))):
            assert time.monotonic() < limit, f"no end in sight\n{self._since(start)}"
            assert self._reader.is_alive(), f"the shell ended\n{self._since(start)}"
            time.sleep(0.02)
        return self._since(start)[: match.end()]

    def _since(self, start: int) -> str:
        text = bytes(self._printed[start:]).decode(errors="replace")
        return _OVERWRITTEN.sub("", _ESCAPE.sub("", re.sub(r"\r+\n", "\n", text)))

    def _read(self) -> None:
        # Reading fails when nobody holds the other end any more.
        with contextlib.suppress(OSError):
            while data := os.read(self._primary, 65_536):
                self._printed += data


def type_all(block: Block, terminal: Terminal) -> None:
    """Type a block into a terminal, and compare what comes.

    A command under which an error of ours is shown has to fail, any other to succeed;
    `anpd up` is left running.
    """
    for typed in block.typed:
        if " up " in f"{typed.command} " and "--background" not in typed.command:
            terminal.leave(typed.command, typed.shown)
            continue
        printed, code = terminal.run(typed.command)
        fails = any(line.startswith("anpd: ") for line in typed.shown)
        assert (code != 0) == fails, f"{typed.command}: {code}\n" + "\n".join(printed)
        found = difference(typed.shown, printed)
        assert found is None, f"line {block.line}, {typed.command}\n{found}"


def walk(
    blocks: Iterable[Block],
    folder: Path,
    environ: Mapping[str, str],
    *,
    together: bool = False,
) -> None:
    """Type each block into a terminal of its own; end them all afterwards.

    Args:
        together: Type all of them into one terminal.
    """
    terminals: list[Terminal] = []
    try:
        for block in blocks:
            if not terminals or not together:
                terminals.append(Terminal(folder, environ))
            type_all(block, terminals[-1])
    finally:
        for terminal in reversed(terminals):
            terminal.close()


def reader_environ(home: Path) -> dict[str, str]:
    """Return a reader's environment: ours, without what our own shell was set to."""
    ours = ("ANPD_", "XDG_", "VIRTUAL_ENV", "PYTHON", "MAKE", "MFLAGS")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    # `HOME` leads to what pip keeps as well.
    cache = os.environ.get("PIP_CACHE_DIR", str(Path.home() / ".cache" / "pip"))
    return {**kept, "HOME": str(home), "PIP_CACHE_DIR": cache}


def with_free_ports(text: str, *ports: int) -> str:
    """Return a document with ports that are free here in place of those it names.

    They lie below those that the system gives away, so that nobody gets one of them
    between now and when the document's commands listen on it.
    """
    with contextlib.ExitStack() as taken:
        for port in ports:
            assert str(port) in text
            probe = taken.enter_context(socket.socket())
            for free in random.sample(range(20_000, 30_000), 100):
                with contextlib.suppress(OSError):
                    probe.bind(("127.0.0.1", free))
                    break
            text = re.sub(rf"\b{port}\b", str(probe.getsockname()[1]), text)
    return text
