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
    from anp.interaction.elements import Task, TaskChange
    from anp.sidecar.a2a.rpc import A2aRpc
    from anp.sidecar.tasks.sessions import Sessions
    from anp.sidecar.tasks.work.report import WorkReport

    file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    numbers: dict[str, int] = {}

    def note(station: str, number: int) -> None:
        os.write(file, f"{station} {number} {time.monotonic_ns()}\n".encode())

    answer = A2aRpc.answer

    async def answered(self: Any, caller: Any, request: Any, **more: Any) -> Any:
        note("parsed", request["id"])
        return await answer(self, caller, request, **more)

    done, post = Sessions._done, WorkReport.post

    def stored(self: Any, entry: Any, step: Any) -> None:
        for event in step.events:
            content = event.content
            match content:
                case Task():
                    given: Any = content.messages[0].parts[0].content
                    numbers[content.id] = given["number"]
                    note("created", given["number"])
                case TaskChange() if content.task in numbers:
                    note(str(content.state), numbers[content.task])
        done(self, entry, step)

    async def posted(self: Any, *args: Any, **more: Any) -> None:
        note("called", numbers[self.task.id])
        await post(self, *args, **more)

    A2aRpc.answer = answered  # type: ignore[method-assign]  # that is the point
    Sessions._done = stored  # type: ignore[method-assign]  # that is the point
    WorkReport.post = posted  # type: ignore[method-assign]  # that is the point
    sys.exit(run(sys.argv[2:]))


if __name__ == "__main__":
    main()
