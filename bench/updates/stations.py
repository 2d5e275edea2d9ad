"""A daemon that notes when each update passes its layers.

Run as `python -m bench.updates.stations FILE COMMAND…`: a line of FILE has the station,
the number of the update, and the time of the clock that all processes here share.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable
from typing import Any

MARK = re.compile(rb"<<(\d+)\|")


def main() -> None:
    """Put the stations in, and run the command."""
    from anp.channel.channel import Channel
    from anp.cli.app import run
    from anp.interaction.stored import event_bytes
    from anp.sidecar.tasks.exchange import SessionPeers
    from anp.sidecar.tasks.sessions import Sessions
    from anp.sidecar.tasks.work.worker import Worker

    file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def note(station: str, content: bytes) -> None:
        for found in MARK.finditer(content):
            line = f"{station} {int(found[1])} {time.monotonic_ns()}\n"
            os.write(file, line.encode())

    def before(owner: Any, name: str, tell: Callable[..., None]) -> None:
        original = getattr(owner, name)

        def wrapped(*args: Any, **more: Any) -> Any:
            tell(*args)
            return original(*args, **more)

        setattr(owner, name, wrapped)

    def updated(_: Any, parts: Any) -> None:
        note("yielded", repr(parts).encode())

    def stored(_: Any, __: Any, step: Any) -> None:
        for event in step.events:
            note("stored", event_bytes(event))

    def sent(_: Any, __: Any, data: bytes) -> None:
        note("sent", data)

    def received(_: Any, __: Any, frame: Any) -> None:
        note("received", repr(frame).encode())

    before(Worker, "update", updated)
    before(Sessions, "_done", stored)
    before(Channel, "send", sent)
    before(SessionPeers, "take", received)
    sys.exit(run(sys.argv[2:]))


if __name__ == "__main__":
    main()
