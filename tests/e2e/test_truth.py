"""Every failed call says truthfully if it may have run.

The capability itself writes down each of its runs. A row of the table is a way to end a
call; each row is walked through an agreement, through the envelope and in words.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from anp.errors import CallError, ErrorKind
from anp.protocols.envelope import ENVELOPE_URI
from anp.sidecar.api.problems import problem_of
from anp.sidecar.attachments import AttachmentSpec, remove_attachment, save_attachment
from anp.sidecar.bound.kept_answers import KeptAnswers
from anp.sidecar.calls.call import CallRequest, CallState, KeptCall, Mode
from anp.sidecar.daemon import Daemon
from anp.sidecar.process.run import finish
from negotiation.need import Need
from tests.e2e.house import House, house_in
from tests.waiting import until

SOURCE = """
import os
import time
from pathlib import Path

FOLDER = Path({folder!r})


class Refused(Exception):
    code = 409
    caller_message = "not on a Sunday"


def work(marker: str, then: str) -> dict[str, str]:
    with (FOLDER / "runs").open("a") as runs:
        print(marker, os.getpid(), file=runs)
    if then == "raise":
        raise ValueError("the password is swordfish, in " + __file__)
    if then == "refuse":
        raise Refused("swordfish")
    if then == "claim":
        raise type("Claim", (Exception,), {{"caller_message": "not run: honestly"}})()
    if then == "huge":
        return {{"text": "x" * 20_000_000}}
    if then == "odd":
        return {{"text": 5}}
    if then == "slow":
        time.sleep(1.4)
    while then == "wait" and not (FOLDER / "go").exists():
        time.sleep(0.01)
    return {{"text": marker}}
"""


class Scene:
    """Two daemons, and a capability that writes down its runs."""

    def __init__(self, house: House, folder: Path) -> None:
        self.house = house
        self.folder = folder
        self.spec = AttachmentSpec(
            kind="python",
            name="w",
            target=f"made_{random.randrange(10**9)}:work",
            cwd=folder,
            expose=("*",),
        )
        module = self.spec.target.partition(":")[0]
        (folder / f"{module}.py").write_text(SOURCE.format(folder=str(folder)))
        self._markers = (f"m{number}" for number in itertools.count())
        self.marker = ""

    async def attach(self) -> None:
        """Attach the capability, or attach it anew."""
        save_attachment(self.house.provider.home.attachments, self.spec)
        await self.house.provider.reload()

    def runs(self) -> list[list[str]]:
        """Return the runs of the present marker, each with the process's id."""
        path = self.folder / "runs"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line.split() for line in lines if line.split()[0] == self.marker]

    async def begin(self, way: str, then: str, **more: Any) -> KeptCall:
        """Begin a call whose capability does `then`."""
        self.marker = next(self._markers)
        provider = self.house.provider
        request = CallRequest(
            peer=f"{provider.url}#{provider.did}",
            need=Need("work"),
            arguments={"marker": self.marker, "then": then},
            mode=Mode.NATURAL_LANGUAGE if way == "words" else Mode.AUTO,
            protocol=ENVELOPE_URI if way == "envelope" else None,
        )
        return await self.house.caller.calls.start(request._replace(**more))

    async def running(self) -> int:
        """Wait until the capability runs, and return its process."""
        await until(lambda: bool(self.runs()))
        return int(self.runs()[0][1])

    @property
    def attached(self) -> Any:
        """The attachment in the provider."""
        return self.house.provider.exposure.attachments["w"][1]


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    # Some of the endings are those of a worker, so the code of rules runs in one.
    flags: dict[str, Any] = {"operation__stop_timeout": 0.5, "sandbox__plans": "worker"}
    async with house_in(tmp_path, **flags) as house:
        made = Scene(house, tmp_path)
        await made.attach()
        yield made
        (tmp_path / "go").touch()


End = Callable[[Scene], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Row:
    """One way in which a call ends."""

    then: str
    "The capability does this."

    ran: bool | None
    "True: `may_have_run` has to be said; False: it must not be; None: no error."

    before: End | None = None
    "Done before the call begins."

    during: End | None = None
    "Done while the capability runs."

    more: dict[str, Any] | None = None
    "Further fields of the request."

    ways: tuple[str, ...] = ("agreement", "envelope")
    "The ways that can end so."


async def kill_child(scene: Scene) -> None:
    os.kill(await scene.running(), signal.SIGKILL)


async def kill_workers(scene: Scene) -> None:
    await scene.running()
    for module in scene.house.provider.sandbox._modules.values():
        if module.worker is not None:
            module.worker.kill("a test")
    (scene.folder / "go").touch()


async def attach_again(scene: Scene) -> None:
    await scene.running()
    scene.spec = replace(scene.spec, env={"X": "1"})
    await scene.attach()
    # The call under way goes on in the old child.
    (scene.folder / "go").touch()


async def remove(scene: Scene) -> None:
    await scene.running()
    remove_attachment(scene.house.provider.home.attachments, "w")
    await scene.house.provider.reload()
    # The call under way has its time.
    (scene.folder / "go").touch()


async def reload(scene: Scene) -> None:
    await scene.running()
    await scene.house.provider.reload()
    (scene.folder / "go").touch()


async def stop(scene: Scene) -> None:
    await scene.running()
    with pytest.raises(CallError) as cut_off:
        await finish(scene.house.provider)
    assert cut_off.value.may_have_run
    await scene.house.provider.links.close()


async def stop_caller(scene: Scene) -> None:
    await scene.running()
    await scene.house.caller.links.close()


def break_links(daemon: Daemon) -> None:
    """Break the connections of a daemon without a word."""
    for link in daemon.links._links:
        link._pipe.connection.transport.abort()


async def cut(scene: Scene) -> None:
    await scene.running()
    break_links(scene.house.provider)
    # The answer comes over the next connection.
    (scene.folder / "go").touch()


async def forget(scene: Scene) -> None:
    """Have the provider know nothing of the call any more, as one that was killed."""
    await scene.running()
    desk = scene.house.provider.provider._parts.work
    desk.kept = KeptAnswers()
    desk.running.clear()
    break_links(scene.house.provider)


async def lose(scene: Scene) -> None:
    """Break the connection, and let no other one come."""
    await scene.running()
    scene.house.provider.links.stop_listening()
    break_links(scene.house.provider)


async def cancel(scene: Scene) -> None:
    await scene.running()
    desk = scene.house.caller.calls
    [call] = [one for one in desk.kept() if not one.is_over]
    await desk.cancel(call)


async def hide(scene: Scene) -> None:
    scene.spec = replace(scene.spec, expose=())
    await scene.attach()


async def hide_it(scene: Scene) -> None:
    await scene.running()
    await hide(scene)


async def give_no_time(scene: Scene) -> None:
    scene.spec = replace(scene.spec, max_timeout={"work": 0.3})
    await scene.attach()


async def allow_no_calls(scene: Scene) -> None:
    scene.attached._limits = replace(scene.attached._limits, max_calls=0)


async def take_the_child(scene: Scene) -> None:
    """Have the child die between the look at its health and the call."""
    scene.attached._limits = replace(
        scene.attached._limits,
        supervisor=replace(scene.attached._limits.supervisor, restart_wait=0.05),
    )
    ready = scene.attached._ready
    scene.attached._wait = scene.attached._wait_ready

    async def wait_ready(capability: str, timeout: float) -> None:
        ready.clear()
        await scene.attached._wait(capability, timeout)

    scene.attached._wait_ready = wait_ready


TABLE: dict[str, Row] = {
    "it answers": Row("ok", None),
    "it raises": Row("raise", True),
    "it refuses on purpose": Row("refuse", True),
    "it claims that it did not run": Row("claim", True),
    "its output is too large": Row("huge", True),
    "its output breaks its schema": Row("odd", True),
    "its child is killed": Row("wait", True, during=kill_child),
    "the worker of the half is killed": Row(
        "wait", True, during=kill_workers, ways=("agreement",)
    ),
    "it is attached anew": Row("wait", None, during=attach_again),
    "its attachment is removed": Row("wait", None, during=remove),
    "its owner hides it": Row("wait", True, during=hide_it),
    "its daemon reloads": Row("wait", None, during=reload),
    "its daemon stops": Row("wait", True, during=stop),
    "the connection is cut": Row("wait", None, during=cut),
    "its daemon forgets it": Row("wait", True, during=forget),
    "its daemon is gone": Row("wait", True, during=lose, more={"timeout": 4.0}),
    "the caller's daemon stops": Row("wait", True, during=stop_caller),
    "its caller takes it back": Row("wait", True, during=cancel),
    "the caller's time is over": Row("wait", True, more={"timeout": 1.0}),
    "the capability's time is over": Row("wait", True, before=give_no_time),
    "it is hidden before": Row("ok", False, before=hide),
    "too many calls run": Row("ok", False, before=allow_no_calls),
    "its child is away": Row("ok", False, before=take_the_child),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "way"), [(name, way) for name, row in TABLE.items() for way in row.ways]
)
async def test_a_failed_call_says_if_it_may_have_run(
    scene: Scene, name: str, way: str
) -> None:
    row = TABLE[name]
    warm = await scene.begin(way, "ok")
    await warm.settled.wait()
    assert warm.result is not None, warm.error
    if row.before is not None:
        await row.before(scene)
    call = await scene.begin(way, row.then, **(row.more or {}))
    if row.during is not None:
        await row.during(scene)
    async with asyncio.timeout(20):
        await call.settled.wait()
    ran = len(scene.runs())
    print(f"\n{way:10} {name:34} ran {ran} {call.error!r:.150}")
    if row.ran is None:
        assert (call.state, ran) == (CallState.DONE, 1)
        return
    assert isinstance(call.error, CallError)
    assert call.error.may_have_run is row.ran
    assert ran == int(row.ran)
    # The problem document of the API says the same; so do all faces, which show it.
    assert (problem_of(call.error).may_have_run is True) is row.ran
    # An exception's words stay with the owner.
    assert "swordfish" not in call.error.detail


@pytest.mark.slow
@pytest.mark.parametrize(
    ("then", "during", "told"),
    [
        ("raise", None, "`w.work` failed: 500 the capability failed; its owner"),
        ("wait", kill_child, "`w.work` failed: 502 the capability's program was lost"),
    ],
)
async def test_an_answer_in_words_tells_it_too(
    scene: Scene, then: str, during: End | None, told: str
) -> None:
    call = await scene.begin("words", then)
    if during is not None:
        await during(scene)
    await call.settled.wait()
    assert isinstance(call.error, CallError)
    assert f"the peer answered: {told}" in call.error.detail
    assert call.error.may_have_run
    assert "swordfish" not in call.error.detail


@pytest.mark.slow
@pytest.mark.parametrize("way", ["agreement", "envelope"])
async def test_a_lost_connection_is_told_while_it_is_tried_again(
    scene: Scene, way: str
) -> None:
    call = await scene.begin(way, "wait", timeout=600.0)
    await lose(scene)
    words = "the connection was lost; it is tried again in"
    await until(lambda: call.waits_for.startswith(words))
    told = [event.data["what"] for event in call.events if "what" in event.data]
    assert "link_lost: connection lost; the answer is fetched" in told
    assert not call.is_over
    await scene.house.caller.calls.cancel(call)
    assert isinstance(call.error, CallError)
    assert call.error.may_have_run


@pytest.mark.slow
async def test_the_owner_can_let_peers_read_exceptions(scene: Scene) -> None:
    scene.spec = replace(scene.spec, show_errors=True)
    await scene.attach()
    call = await scene.begin("agreement", "raise")
    await call.settled.wait()
    assert isinstance(call.error, CallError)
    assert "ValueError: the password is swordfish" in call.error.detail


@pytest.mark.slow
@pytest.mark.parametrize("way", ["agreement", "envelope", "words"])
async def test_a_call_that_outlives_its_key_says_so(way: str, tmp_path: Path) -> None:
    async with house_in(tmp_path, channels__key_lifetime=2) as house:
        scene = Scene(house, tmp_path)
        await scene.attach()
        call = await scene.begin(way, "wait")
        await call.settled.wait()
        (tmp_path / "go").touch()
    assert isinstance(call.error, CallError)
    assert len(scene.runs()) == 1
    assert (call.error.kind, call.error.may_have_run) == (ErrorKind.TIMEOUT, True)
    assert "link_lost" not in call.error.detail
    assert "channels.key_lifetime" in call.error.detail


@pytest.mark.slow
async def test_a_key_is_left_before_a_call_could_outlive_it(tmp_path: Path) -> None:
    # Half of the key's life is enough for each of these calls; a fifth is not.
    async with house_in(tmp_path, channels__key_lifetime=4) as house:
        scene = Scene(house, tmp_path)
        await scene.attach()
        calls = [await scene.begin("agreement", "ok")]
        await calls[0].settled.wait()
        for _ in range(20):
            calls.append(await scene.begin("agreement", "slow"))
            await asyncio.sleep(0.2)
        for call in calls:
            await call.settled.wait()
    assert [call.error for call in calls if call.error] == []
