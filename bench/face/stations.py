"""A daemon that notes when a call passes its layers.

Run as `python -m bench.face.stations FILE COMMAND…`: a line of FILE has the station,
the number in the call, and the time of the clock that all processes here share.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any


def main() -> None:
    """Put the stations in, and run the command."""
    from anp.cli.app import run
    from anp.interaction.elements import Message, MessagePurpose, Task, TaskChange
    from anp.sidecar.a2a.rpc import A2aRpc
    from anp.sidecar.tasks.sessions import Sessions

    file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    numbers: dict[str, int] = {}

    def note(station: str, number: int) -> None:
        os.write(file, f"{station} {number} {time.monotonic_ns()}\n".encode())

    answer = A2aRpc.answer

    async def answered(self: Any, caller: Any, request: Any, **more: Any) -> Any:
        note("parsed", request["id"])
        return await answer(self, caller, request, **more)

    apply = Sessions._apply

    async def applied(self: Any, log: str, act: Any) -> Any:
        began = time.monotonic_ns()
        step = await apply(self, log, act)
        for event in step.events:
            content = event.content
            match content:
                case Task():
                    number = content.messages[0].parts[0].content
                    numbers[content.id] = number["number"]
                    note("created", numbers[content.id])
                case TaskChange() if content.task in numbers:
                    note(str(content.state), numbers[content.task])
                case Message(purpose=MessagePurpose.RESULT):
                    line = f"called {numbers[content.task]} {began}\n"
                    os.write(file, line.encode())
        return step

    A2aRpc.answer = answered  # type: ignore[method-assign]  # that is the point
    Sessions._apply = applied  # type: ignore[method-assign]  # that is the point
    sys.exit(run(sys.argv[2:]))


if __name__ == "__main__":
    main()
