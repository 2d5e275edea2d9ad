"""A command that waits says for what, and Ctrl-C ends its call everywhere."""

from __future__ import annotations

import os
import pty
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.daemons import Anpd

SOURCE = """
import time
from pathlib import Path

def slow(seconds: float) -> dict[str, float]:
    Path("begun").touch()
    time.sleep(seconds)
    return {"waited": seconds}

def hello(name: str) -> dict[str, str]:
    return {"text": f"hello {name}"}
"""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Anpd, Anpd, Path]]:
    """A caller that has the provider in its address book, and the provider's folder."""
    folder = tmp_path_factory.mktemp("waiting")
    (folder / "waits.py").write_text(SOURCE)
    provider = Anpd(folder / "provider", consensus__use="true")
    caller = Anpd(folder / "caller", consensus__use="true")
    for name in ("slow", "hello"):
        provider.ok(
            *("attach", "python", "--name", name, "--expose", "*", "--"),
            f"waits:{name}",
            cwd=folder,
        )
    provider.start()
    caller.start()
    caller.ok("peers", "add", "there", provider.address)
    try:
        yield caller, provider, folder
    finally:
        caller.stop()
        provider.stop()


def command(caller: Anpd, *words: str) -> list[str]:
    return [sys.executable, "-m", "anp", "--home", str(caller.home), *words]


def slow_call(caller: Anpd, seconds: float, *more: str) -> list[str]:
    data = f'{{"seconds": {seconds}}}'
    return command(caller, "call", "there", "slow.slow", "-d", data, *more)


class Typed:
    """A command at a terminal."""

    def __init__(self, words: list[str]) -> None:
        self._fd, other = pty.openpty()
        self.process = subprocess.Popen(
            words,
            stdin=other,
            stdout=other,
            stderr=other,
            start_new_session=True,
            preexec_fn=lambda: _take_terminal(other),
        )
        os.close(other)
        self.printed = b""

    def read(self, *, until: bytes = b"", timeout: float = 60.0) -> str:
        """Read until a text came, or without one until the command has ended."""
        limit = time.monotonic() + timeout
        while not until or until not in self.printed:
            assert time.monotonic() < limit, self.printed
            if select.select([self._fd], [], [], 0.1)[0]:
                try:
                    data = os.read(self._fd, 65_536)
                except OSError:
                    break
                if not data:
                    break
                self.printed += data
        return self.printed.decode()

    def press_ctrl_c(self) -> None:
        """Send what the key sends."""
        os.write(self._fd, b"\x03")

    def close(self) -> int:
        """Return the exit code of the command, which has ended."""
        code = self.process.wait(timeout=60)
        os.close(self._fd)
        return code


def _take_terminal(fd: int) -> None:
    import fcntl
    import termios

    fcntl.ioctl(fd, termios.TIOCSCTTY, 0)


def outcomes(caller: Anpd) -> list[str]:
    import httpx

    from anp.sidecar.home.home import Home

    owner = Home(caller.home).read_owner()
    with httpx.Client(
        transport=httpx.HTTPTransport(uds=owner.socket),
        headers={"authorization": f"Bearer {owner.token}"},
    ) as client:
        found = client.get("http://anpd/v1/calls").json()["calls"]
    return [call["outcome"] for call in found]


def wait_until_begun(folder: Path) -> None:
    limit = time.monotonic() + 60
    while not (folder / "begun").exists():
        assert time.monotonic() < limit
        time.sleep(0.02)
    (folder / "begun").unlink()


def test_a_terminal_says_what_a_call_waits_for_in_one_line(
    pair: tuple[Anpd, Anpd, Path],
) -> None:
    caller, _, folder = pair
    typed = Typed(slow_call(caller, 2.5))
    printed = typed.read()
    assert typed.close() == 0
    (folder / "begun").unlink()
    lines = [line for line in printed.split("\r") if "waiting for the peer" in line]
    assert len(lines) > 3
    # Each replaces the one before, and nothing of it is left above the result.
    assert all("\n" not in line for line in lines)
    seen = "".join(part.split("\r")[-1] + "\n" for part in printed.split("\r\n"))
    assert "waiting" not in seen
    assert '"waited": 2.5' in seen


def test_nothing_of_it_is_printed_elsewhere(pair: tuple[Anpd, Anpd, Path]) -> None:
    caller, _, folder = pair
    ended = subprocess.run(slow_call(caller, 1.5), capture_output=True, check=True)
    assert b"waiting" not in ended.stderr
    assert b"\x1b" not in ended.stderr
    typed = Typed(slow_call(caller, 1.5, "--json"))
    assert "waiting" not in typed.read()
    assert typed.close() == 0
    (folder / "begun").unlink()


def test_ctrl_c_at_a_terminal_ends_the_call(pair: tuple[Anpd, Anpd, Path]) -> None:
    caller, _, folder = pair
    typed = Typed(slow_call(caller, 30.0))
    wait_until_begun(folder)
    typed.read(until=b"waiting for the peer")
    began = time.monotonic()
    typed.press_ctrl_c()
    printed = typed.read()
    assert typed.close() == 130
    assert time.monotonic() - began < 5
    assert "anpd: the call was cancelled (it may have run)" in printed
    assert outcomes(caller)[0] == "interrupted"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_command_that_ends_takes_its_call_with_it(
    pair: tuple[Anpd, Anpd, Path], number: signal.Signals
) -> None:
    caller, _, folder = pair
    process = subprocess.Popen(slow_call(caller, 30.0), stderr=subprocess.PIPE)
    wait_until_begun(folder)
    process.send_signal(number)
    _, complained = process.communicate(timeout=60)
    if number is signal.SIGINT:
        assert process.returncode == 130
        assert complained == b"anpd: interrupted (it may have run)\n"
    _until_cancelled(caller)


def test_a_terminal_that_is_closed_takes_its_call_with_it(
    pair: tuple[Anpd, Anpd, Path],
) -> None:
    caller, _, folder = pair
    typed = Typed(slow_call(caller, 30.0))
    wait_until_begun(folder)
    typed.process.kill()
    typed.close()
    _until_cancelled(caller)


def _until_cancelled(caller: Anpd) -> None:
    limit = time.monotonic() + 10
    while outcomes(caller)[0] != "interrupted":
        assert time.monotonic() < limit, outcomes(caller)
        time.sleep(0.05)


def test_a_peer_is_described_with_lines_that_can_be_typed(
    pair: tuple[Anpd, Anpd, Path],
) -> None:
    caller, provider, _ = pair
    printed = caller.ok("peers", "describe", "there").stdout.splitlines()
    assert any(line.startswith("hello.hello") for line in printed)
    line = next(line for line in printed if "call there hello.hello" in line)
    words = shlex.split(line)[3:]
    ran = subprocess.run(command(caller, *words), capture_output=True, check=True)
    assert b"hello sample text" in ran.stdout
    found = caller.ok("peers", "describe", "there", "--json").json()
    names = {one["name"]: one for one in found["capabilities"]}
    assert names["hello.hello"]["input_schema"]["required"] == ["name"]
    listed = caller.ok("peers", "list").stdout
    assert "there" in listed
    assert provider.url in listed


def test_data_that_lacks_something_is_the_callers_error(
    pair: tuple[Anpd, Anpd, Path],
) -> None:
    caller, _, _ = pair
    ended = caller.run("call", "there", "hello.hello", "-d", "{}")
    assert ended.code == 2
    assert "name is required" in ended.stderr
    ended = caller.run("call", "there", "do it", "--mode", "natural-language")
    assert ended.code == 10
    assert "this agent cannot serve that" in ended.stderr
