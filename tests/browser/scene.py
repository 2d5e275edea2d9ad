"""A daemon with a past, for pictures and for looks at every page.

Its calls, peers and model calls of the last hours are written into its home before it
starts. Around it are two real daemons: one that it calls, has tasks with and shares a
group with, and one whose call waits for its owner's decision.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from anp.sidecar.config.settings import AccessLogConfig
from anp.sidecar.home.home import Home
from anp.sidecar.telemetry.call_entry import CallEntry
from anp.sidecar.telemetry.call_log import CallLog
from cache.records.negotiations import ModelCallRecord, SpendRecord
from cache.records.peers import PeerRecord, PeerState
from cache.store import Store
from negotiation.llm.asking.budget import utc_day
from tests.browser.stage import SOURCE, begun_call
from tests.e2e.daemons import Anpd
from tests.e2e.owner import owner_client
from tests.waiting import PATIENCE

T = TypeVar("T")

PEERS = (
    ("bakery-north", 0.9, 0.0, 9.0),
    ("flour-mill", 0.5, 0.0, 24.0),
    ("courier", 0.35, 0.12, 160.0),
    ("tax-office", 0.06, 0.3, 900.0),
    ("concierge", -0.6, 0.0, 14.0),
    ("travel-desk", -0.3, 0.02, 30.0),
    ("price-watch", -1.1, 0.0, 6.0),
    ("unknown-buyer", -0.3, 0.6, 3.0),
)
"""Name, calls in a minute (below zero: the peer calls us), share that fails, and the
usual milliseconds."""

AGENT = '''
from collections.abc import Iterator
from typing import Protocol


class Context(Protocol):
    pass


def bake(kind: str, context: Context) -> str:
    """Bake to order, and say how it goes."""
    context.progress(1, 3, "the dough rests")
    return f"{kind}: {context.ask('With poppy seeds or without?')}"


def price_list(day: str) -> str:
    """Give the prices of a day."""
    return f"rolls 0.80, rye loaf 4.20 ({day})"
'''


@dataclass(slots=True)
class Scene:
    """The daemon in the middle, and the pages that it has something to show on."""

    agent: Anpd
    bakery: Anpd
    guest: Anpd
    "A stranger, whose calls wait for the owner."

    pages: dict[str, str]
    "Addresses behind `#/` by the name of the page."


@contextmanager
def scene_in(folder: Path) -> Iterator[Scene]:
    """Play the scene, and keep it for a block."""
    agent = Anpd(folder / "agent", consensus__use="true", negotiation__approve="always")
    bakery = Anpd(folder / "bakery", consensus__use="true")
    guest = Anpd(folder / "guest")
    (folder / "shop.py").write_text(SOURCE)
    (folder / "oven.py").write_text(AGENT)
    write_past(agent)
    own = ("attach", "python", "--name", "shop", "--expose", "*", "shop")
    agent.ok(*own, cwd=folder)
    bakery.ok("attach", "python", "--name", "oven", "--expose", "*", "oven", cwd=folder)
    with agent.up(), bakery.up(), guest.up():
        waits = begun_call(guest, agent.address, "stock_level", sku="rye flour")
        try:
            yield Scene(agent, bakery, guest, play(agent, bakery))
        finally:
            end(waits)


def play(agent: Anpd, bakery: Anpd) -> dict[str, str]:
    """Make a call, tasks, a group and a subscription; return the pages of them all."""
    agent.ok("peers", "add", "bakery", bakery.address)
    for name, *_ in PEERS[:-1]:
        agent.ok("peers", "add", name, did_of(name))
    day = ("-d", '{"day": "Friday"}', "--json")
    answer = agent.ok("call", "bakery", "oven.price_list", *day).json()
    kind = ("-d", '{"kind": "rye loaf"}')
    agent.ok("tasks", "start", "bakery", "oven.bake", *kind)
    made = ("groups", "create", "Saturday market", "--invite", bakery.address, "--json")
    group = agent.ok(*made).json()["id"]
    invited = soon(lambda: bakery.ok("groups", "list", "--json").json()["groups"])
    bakery.ok("groups", "accept", invited[0]["id"])
    soon(lambda: len(agent.ok("groups", "show", group, "--json").json()["members"]) > 1)
    agent.ok("groups", "post", group, "Who brings the awning?")
    bakery.ok("groups", "post", group, "We do. The oven is booked from five.")
    each = ("--every", "1h", "--max-runs", "3")
    agent.ok("subscriptions", "create", bakery.address, "oven.price_list", *each)
    with owner_client(agent.home) as owner:
        asked = soon(lambda: owner.get("/v1/approvals").json()["negotiations"])
        calls = owner.get("/v1/calls?direction=made&limit=200").json()["calls"]
        call = next(
            one["id"] for one in calls if one["capability"] == "oven.price_list"
        )
        [task] = owner.get("/v1/tasks").json()["tasks"]
        [subscription] = owner.get("/v1/subscriptions").json()["subscriptions"]
    return {
        "overview": "",
        "approvals": "approvals",
        "negotiations": "negotiations",
        "negotiation": f"negotiations/{asked[0]['id']}",
        "protocols": "protocols",
        "protocol": f"protocols/{answer['protocol']}",
        "calls": "calls",
        "call": f"calls/{call}",
        "tasks": "tasks",
        "session": f"tasks/{task['session']}",
        "groups": "groups",
        "group": f"groups/{group}",
        "subscriptions": "subscriptions",
        "subscription": f"subscriptions/{subscription['id']}",
        "peers": "peers",
        "peer": f"peers/{bakery.did}",
        "traffic": "traffic",
        "spend": "spend",
        "daemon": "daemon",
        "attachment": "daemon/shop",
        "nothing": "no-such-page",
    }


def soon(read: Callable[[], T]) -> T:
    """Read something again and again until it is there; return it."""
    limit = time.monotonic() + PATIENCE
    while not (found := read()):
        assert time.monotonic() < limit
        time.sleep(0.05)
    return found


def write_past(agent: Anpd) -> None:
    """Write calls, peers and model calls of the last hour into a home."""
    home = Home(agent.home)
    home.create()
    chance, now = random.Random(7), time.time()
    entries = sorted(past(chance, now), key=lambda one: one.ended)
    asyncio.run(log(home.path / "calls", entries))
    with closing(Store(home.store)) as store:
        for at, (name, *_) in enumerate(PEERS):
            state = (
                PeerState.WAITING if name.startswith("unknown") else PeerState.ALLOWED
            )
            seen = now - 60 * at
            store.save_peer(
                PeerRecord(
                    did_of(name),
                    state,
                    now - 86_400 * (at + 1),
                    seen,
                    urls=(f"wss://{name}.example/",),
                )
            )
        spend(store, chance, now)


def past(chance: random.Random, now: float) -> Iterator[CallEntry]:
    """Yield the calls of the last hour, more of them around its middle."""
    for name, each, failing, usual in PEERS:
        for minute in range(60):
            wave = 1.3 - abs(minute - 34) / 40
            for _ in range(int(abs(each) * 4 * wave * chance.uniform(0.4, 1.5))):
                failed = chance.random() < failing
                made = each > 0
                yield CallEntry(
                    id=f"{chance.getrandbits(64):016x}",
                    direction="made" if made else "served",
                    at=round(now - 60 * minute - chance.uniform(1, 59), 3),
                    ms=round(usual * chance.lognormvariate(0, 0.35), 1),
                    outcome=chance.choice(("timeout", "peer_unreachable"))
                    if made and failed
                    else "policy"
                    if failed
                    else "ok",
                    reason=""
                    if not failed
                    else "nobody answered in time"
                    if made
                    else "the peer is not allowed yet",
                    peer=did_of(name),
                    need=f"{name}.order" if made else "",
                    capability=f"{name}.order" if made else "shop.stock_level",
                    source="none" if failed else "published",
                )


async def log(folder: Path, entries: list[CallEntry]) -> None:
    """Write entries as the daemon does."""
    written = CallLog(folder, AccessLogConfig(), clock=time.time)
    for entry in entries:
        written.add(entry)
    await written.close()


def spend(store: Store, chance: random.Random, now: float) -> None:
    """Give the daemon model calls of the last hour and of six days."""
    moments = [now - 60 * chance.uniform(2, 58) for _ in range(24)]
    moments += [now - 86_400 * day for day in range(1, 7)]
    for number, at in enumerate(sorted(moments)):
        tokens = chance.randint(600, 3_200)
        call = ModelCallRecord(
            id=f"call{number}",
            day=utc_day(at),
            at=at,
            account="owner",
            peer=did_of(PEERS[number % 4][0]),
            negotiation_id=None,
            step="judge_cases" if number % 2 else "propose",
            model="some-model",
            outcome="ok",
            input_tokens=tokens,
            output_tokens=tokens // 4,
            estimated=False,
            ms=1_450.0,
            cost=0.0,
        )
        store.save_spend(
            SpendRecord(
                utc_day(at),
                "owner",
                number + 1,
                2_000 * (number + 1),
                500 * (number + 1),
            ),
            call,
        )


def did_of(name: str) -> str:
    """Return a DID for a peer that exists in stories only."""
    return f"did:wba:{name}.example"


def end(process: subprocess.Popen[str]) -> None:
    """End a call that still waits."""
    process.kill()
    process.communicate()
