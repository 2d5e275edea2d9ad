"""The daemon under test: its capabilities, and where each run writes itself down."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from anp.sidecar.attachments import AttachmentSpec, save_attachment
from anp.sidecar.attachments.spec import remove_attachment
from anp.sidecar.home.home import Home
from bench.ready import children_of
from tests.attacks.victim import Victim

NOTED = ("note_0", "note_1", "slow", "note_2", "again", "note_3")

CAPABILITIES = tuple(f"{where}.{name}" for where in "ab" for name in NOTED)
"Full names of what peers call."

COMES_AND_GOES = "b"
"The attachment that is taken away and attached again."

SOURCE = '''
import json
import os
import time
import uuid

FILE = {file!r}


def write_down(call, value, *, repeatable=False):
    """Note this run before anything else can happen to it; one write, one line."""
    run = uuid.uuid4().hex
    note = {{"call": call, "run": run, "value": value, "repeatable": repeatable}}
    place = os.open(FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(place, json.dumps(note).encode() + b"\\n")
    finally:
        os.close(place)
    return {{"call": call, "run": run, "answer": str(value * 7)}}


def slow(call: str, value: int) -> dict[str, str]:
    """Multiply by seven and take a while."""
    result = write_down(call, value)
    time.sleep(0.1 + value % 10 / 20)
    return result


def again(call: str, value: int) -> dict[str, str]:
    """Multiply by seven; it may be repeated."""
    return write_down(call, value, repeatable=True)
'''

NOTE = '''

def note_{number}(call: str, value: int) -> dict[str, str]:
    """Multiply by seven, way {number}."""
    return write_down(call, value)
'''


class Provider(Victim):
    """The daemon under test, with two attachments of the same functions."""

    def __init__(self, folder: Path, runs: Path) -> None:
        """Make its home.

        Args:
            runs: The file in which capabilities note each run.
        """
        super().__init__(folder, folder / "provider", {})
        notes = "".join(NOTE.format(number=number) for number in range(4))
        source = SOURCE.format(file=str(runs)) + notes
        (folder / "soak_functions.py").write_text(source)
        self.home.mkdir(mode=0o700)
        for name in "ab":
            self.attach(name)

    def attach(self, name: str) -> None:
        """Write the file of an attachment; in effect at the next reload."""
        save_attachment(
            self.home / "attachments",
            AttachmentSpec(
                kind="python",
                name=name,
                target="soak_functions",
                cwd=self.folder,
                expose=NOTED,
                idempotent=("again",),
            ),
        )

    def detach(self, name: str) -> None:
        """Remove the file of an attachment; in effect at the next reload."""
        remove_attachment(self.home / "attachments", name)

    def is_detached(self, name: str) -> bool:
        """Return whether the file of an attachment was removed."""
        return not (self.home / "attachments" / f"{name}.json").exists()

    def reload(self) -> None:
        """Have the daemon read its attachments again.

        Raises:
            OSError: It could not be asked, or refused.
        """
        self._ask("POST", "/v1/reload", "{}")

    def allow_every_second(self) -> None:
        """Allow every second peer that was seen.

        Raises:
            OSError: It could not be asked, or refused.
        """
        seen = [one["did"] for one in self._ask("GET", "/v1/peers")["peers"]]
        for did in sorted(seen)[::2]:
            self._ask("POST", "/v1/peers/allow", json.dumps({"peer": did}))

    def count_agreements(self) -> int:
        """Return the number of agreements that the daemon holds.

        Raises:
            OSError: It could not be asked, or refused.
        """
        count, after = 0, ""
        while True:
            page = self._ask("GET", f"/v1/protocols?limit=100&after={after}")
            count += len(page["protocols"])
            if not page["next"]:
                return count
            after = quote(page["next"])

    def _ask(self, method: str, path: str, body: str | None = None) -> Any:
        owner = Home(self.home).read_owner()
        headers = {
            "authorization": f"Bearer {owner.token}",
            "content-type": "application/json",
        }
        api = http.client.HTTPConnection("anpd", timeout=60)
        with socket.socket(socket.AF_UNIX) as api.sock:
            api.sock.settimeout(60)
            api.sock.connect(str(owner.socket))
            api.request(method, path, body, headers)
            answer = api.getresponse()
            text = answer.read()
        if answer.status != 200:
            raise OSError(f"{path}: {answer.status} {text[:300]!r}")
        return json.loads(text)

    def kill_child(self, index: int) -> bool:
        """Kill one process of the attached functions; return whether there was one."""
        found = [
            pid for pid in children_of(self.pid) if "soak_functions" in _command(pid)
        ]
        if found:
            os.kill(found[index % len(found)], signal.SIGKILL)
        return bool(found)


def read_notes(path: Path) -> Iterator[dict[str, Any]]:
    """Give the notes of a file; a last line that was cut off counts for nothing."""
    if not path.exists():
        return
    for line in path.read_bytes().split(b"\n")[:-1]:
        yield json.loads(line)


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""
