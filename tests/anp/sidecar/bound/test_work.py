"""Progress of a call between its tool and its caller: nothing is left out unsaid."""

from __future__ import annotations

from typing import Any

import pytest

from anp.sidecar.attachments.attachment import Progress
from anp.sidecar.bound import work
from anp.sidecar.bound.kept_answers import CallName
from anp.sidecar.bound.signs import CallSign
from anp.sidecar.bound.work import MAX_WAITING, CallTerms, ServedCall, WorkDesk
from anp.sidecar.offer.call_times import CallTimes
from negotiation.messages import CallSignal, SignalKind


class Route:
    """The channel of a call, as far as one needs it."""

    channel = None

    def __init__(self) -> None:
        self.desk = WorkDesk(CallTimes.__new__(CallTimes), default=60.0)


@pytest.mark.parametrize(
    ("count", "left_out"), [(MAX_WAITING, 0), (MAX_WAITING + 7, 7)]
)
async def test_every_report_is_told_as_long_as_few_wait(
    count: int, left_out: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    signs: list[CallSign] = []
    terms = CallTerms(on_sign=signs.append)

    async def send(channel: Any, name: str, kind: SignalKind, data: Any = None) -> None:
        terms.sign(CallSignal(message_id=name, kind=kind, data=data))

    monkeypatch.setattr(work, "send_signal", send)
    route: Any = Route()
    name = CallName("a b", "m")
    call = ServedCall(name, route, None)
    for number in range(count):
        call.progress(Progress(number, count, "step"))
    await call.tell_progress()
    told = [one.progress for one in signs]
    assert told == [float(number) for number in range(left_out, count)]
    assert [one.left_out for one in signs] == [left_out] + [0] * (MAX_WAITING - 1)
    assert ("7 left out" in signs[0].what) is (left_out == 7)
    # A peer that floods its caller is cut, and the caller is told of it.
    flood = CallSignal(message_id="m", kind=SignalKind.PROGRESS, data={"progress": 1})
    for _ in range(1000):
        terms.sign(flood)
    assert len(signs) < 1000
    terms._room = 1.0
    terms.sign(flood)
    assert signs[-1].left_out > 0
