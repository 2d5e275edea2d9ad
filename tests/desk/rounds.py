"""One round of the evaluation: a task over two daemons, and how it ended."""

from __future__ import annotations

import json
import re
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from anp.channel.channel import Channel
from anp.errors import CallError, ErrorKind
from anp.sidecar.calls.call import CallRequest
from anp.sidecar.daemon import Daemon
from anp.wire.frames import ProtocolType
from tests.desk.cassette import Ask, endpoint
from tests.desk.fakes import providers
from tests.desk.stage import differences, pair
from tests.desk.tasks.task import Absent, Case, Failure, Task

Json = dict[str, Any]

_FRAMES: ContextVar[list[bytes] | None] = ContextVar("_FRAMES", default=None)
"Application data that the daemons of this round sent."


class End(StrEnum):
    """How a task, or one request of it, ended; the worst of its requests counts."""

    SERVED = "served"
    "Every request had the result or the error that it has to have."

    REFUSED = "refused"
    "Nothing can serve it, and it was refused."

    UNSERVED = "unserved"
    "It could be served, and ended with an error; no result was wrong."

    UNREFUSED = "unrefused"
    "Nothing can serve it, and it was agreed or failed; no result came."

    WRONG = "wrong"
    "A result is another one, or the format that was insisted on was not kept."

    INVENTED = "invented"
    "A result came where the provider has no value for it."


GOOD = frozenset({End.SERVED, End.REFUSED})
"What a task may end with."


@dataclass
class Round:
    """How one task went."""

    task: str
    servable: bool
    "Whether anything can serve it."

    end: End = End.SERVED
    notes: list[str] = field(default_factory=list)
    "What was not as it should be, one line for each request."

    calls: int = 0
    "Model calls of both sides together, at the first contact."

    later_calls: int = 0
    "Model calls of all later requests together."

    tokens: int = 0
    "Of all questions and answers; four characters of JSON are one."

    prompts: list[int] = field(default_factory=list)
    "Characters of each question's messages."

    seconds: float = 0.0
    "First contact."

    def add(self, end: End, note: str) -> None:
        """Take the end of a request."""
        order = list(End)
        self.end = max(self.end, end, key=order.index)
        self.notes.append(note)

    def as_json(self) -> Json:
        """Return it for a file."""
        return asdict(self)

    @classmethod
    def from_json(cls, found: Json) -> Round:
        """Read it from a file."""
        return cls(**{**found, "end": End(found["end"])})


@contextmanager
def frames_kept() -> Iterator[None]:
    """Keep the application data of all rounds that are played within."""
    send = Channel.send

    async def watched(
        self: Channel, kind: ProtocolType, data: bytes, *args: Any, **more: Any
    ) -> Any:
        seen = _FRAMES.get()
        if seen is not None and kind is ProtocolType.APPLICATION:
            seen.append(data)
        return await send(self, kind, data, *args, **more)

    Channel.send = watched  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        Channel.send = send  # type: ignore[method-assign]


async def play(task: Task, ask: Ask | None) -> Round:
    """Play one task over two new daemons.

    Args:
        ask: Answers both sides' questions; without it both have rules only.
    """
    round_ = Round(task.name, servable=not task.lacking)
    frames: list[bytes] = []
    _FRAMES.set(frames)
    with (
        tempfile.TemporaryDirectory() as folder,
        providers(task) as attached,
        endpoint(_counted(ask, round_)) if ask else nullcontext() as model,
    ):
        async with pair(Path(folder), attached, model) as (caller, provider):
            for number, case in enumerate(task.cases):
                frames.clear()
                began, asked = time.monotonic(), model.calls if model else 0
                ended = await _request(task, case, caller, provider, frames)
                calls = (model.calls if model else 0) - asked
                if number:
                    round_.later_calls += calls
                else:
                    round_.seconds = round(time.monotonic() - began, 1)
                    round_.calls = calls
                if ended is not None:
                    round_.add(*ended)
                # A need in words is another one each time.
                if ended is not None and not number and not _differs_in_words(task):
                    break
        if model is not None:
            round_.notes += model.failures
    if task.lacking and round_.end is End.SERVED:
        round_.end = End.REFUSED
    return round_


def _counted(ask: Ask, round_: Round) -> Ask:
    """Answer as `ask` does, and count into `round_`."""

    def answer(request: Json) -> Json:
        message = ask(request)
        texts = [str(part["content"]) for part in request["messages"]]
        round_.prompts.append(sum(map(len, texts)))
        said = [request["messages"], message]
        round_.tokens += len(json.dumps(said, ensure_ascii=False)) // 4
        return message

    return answer


def _differs_in_words(task: Task) -> bool:
    """Return whether requests of the task differ in their words."""
    return any(case.requirement for case in task.cases)


async def _request(
    task: Task, case: Case, caller: Daemon, provider: Daemon, frames: Sequence[bytes]
) -> tuple[End, str] | None:
    """Make one request; return how it ended if not as it should."""
    said = f"{case.requirement} {case.arguments}".strip()
    try:
        result = await caller.caller.call(
            CallRequest(
                peer=f"{provider.url}#{provider.did}",
                need=task.need(case),
                arguments=case.arguments,
            )
        )
    except CallError as exc:
        if _is_right_error(task, case, exc):
            return None
        end = End.UNREFUSED if task.lacking else End.UNSERVED
        return end, f"{said}: {exc.kind}: {exc}"
    if task.lacking or isinstance(case.expected, Absent):
        return End.INVENTED, f"{said}: {result.output}"
    if isinstance(case.expected, Failure):
        return End.WRONG, f"{said}: error {case.expected.code} expected, got a result"
    wrong = differences(case.expected, result.output) + _format_faults(task, frames)
    return (End.WRONG, f"{said}: {'; '.join(wrong)}") if wrong else None


def _is_right_error(task: Task, case: Case, exc: CallError) -> bool:
    if task.lacking:
        return exc.kind is ErrorKind.NEGOTIATION_REJECTED
    if isinstance(case.expected, Absent):
        return exc.kind in {ErrorKind.APPLICATION_ERROR, ErrorKind.USAGE}
    return (
        isinstance(case.expected, Failure)
        and exc.kind is ErrorKind.APPLICATION_ERROR
        and f"answered {case.expected.code}:" in str(exc)
    )


def _format_faults(task: Task, frames: Sequence[bytes]) -> list[str]:
    """Return what in the bytes of one good call is not as the task insists."""
    wanted = [task.request_bytes, task.answer_bytes]
    if not any(wanted):
        return []
    # Test cases with the peer may have run before the call itself.
    sent = [data.decode("utf-8", "replace") for data in frames[-2:]]
    return [
        f"{data!r} is not of the format"
        for pattern, data in zip(wanted, sent, strict=True)
        if not re.fullmatch(pattern, data, re.DOTALL)
    ]


def table(rounds: Sequence[Round]) -> str:
    """Return the rounds as lines, and their totals."""
    lines = [
        f"{one.task:20} {one.end:10} {one.calls:2} {one.later_calls:2} "
        f"{one.tokens:6} {one.seconds:6.1f} s  {'; '.join(one.notes)[:300]}"
        for one in rounds
    ]
    ends = ", ".join(
        f"{sum(one.end is end for one in rounds)} {end}" for end in End if rounds
    )
    lines.append(f"{len(rounds)} tasks: {ends}")
    can = [one for one in rounds if one.servable]
    if can:
        served = sum(one.end is End.SERVED for one in can)
        lines.append(f"served of what can be served: {served}/{len(can)}")
    calls = sorted(one.calls for one in rounds)
    prompts = [size for one in rounds for size in one.prompts]
    if calls:
        late = calls[min(len(calls) - 1, int(0.95 * len(calls)))]
        lines.append(
            f"model calls at first contact: median {statistics.median(calls):g}, 95th "
            f"percentile {late}; later {sum(one.later_calls for one in rounds)}; "
            f"tokens {sum(one.tokens for one in rounds)}; characters of a prompt: "
            f"median {statistics.median(prompts) if prompts else 0:g}"
        )
    return "\n".join(lines)
