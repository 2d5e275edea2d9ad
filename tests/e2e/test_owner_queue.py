"""The owner's queue over real daemons (ANP-34)."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from negotiation.mind import Demand
from negotiation.need import Need
from negotiation.rules.rules import propose
from tests.clauses import clause
from tests.e2e.daemons import Anpd, Ended
from tests.e2e.raw_peer import raw_peer

WAIT = 30.0
"Seconds until something has to have happened; generous, for busy machines."

SOURCE = """
from typing import TypedDict


class Order(TypedDict):
    total: int


def place_order(amount: int, label: str) -> Order:
    return {"total": amount * 3}
"""


def configure(daemon: Anpd, **settings: Any) -> None:
    """Write the `[negotiation]` section of a home."""
    daemon.home.mkdir(exist_ok=True)
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    text = "\n".join(["[negotiation]", *lines, ""])
    (daemon.home / "anpd.toml").write_text(text)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Anpd, Anpd]]:
    """Give a caller and a provider of `shop.place_order`; the test starts them."""
    caller, provider = Anpd(tmp_path / "caller"), Anpd(tmp_path / "provider")
    (tmp_path / "shop.py").write_text(SOURCE)
    configure(caller)
    configure(provider)
    try:
        yield caller, provider
    finally:
        caller.stop()
        provider.stop()


def start(pair: tuple[Anpd, Anpd], folder: Path) -> None:
    """Start both, and attach the shop to the provider."""
    caller, provider = pair
    provider.start()
    caller.start()
    provider.ok(
        *("attach", "python", "shop:place_order", "--expose", "*", "--name", "shop"),
        cwd=folder,
    )


def restart(pair: tuple[Anpd, Anpd]) -> None:
    """Stop both and start them again, the provider at its port."""
    caller, provider = pair
    port = provider.port
    for daemon in pair:
        daemon.stop()
    provider.start(port=port)
    caller.start()


def listed(daemon: Anpd, *options: str) -> list[dict[str, Any]]:
    """Return what `negotiations list` knows."""
    found = daemon.ok("negotiations", "list", "--json", *options).json()
    negotiations: list[dict[str, Any]] = found["negotiations"]
    return negotiations


def newest(daemon: Anpd) -> dict[str, Any]:
    """Return the newest negotiation of a daemon."""
    return listed(daemon)[0]


def call(pair: tuple[Anpd, Anpd], need: str, *options: str, **arguments: Any) -> Ended:
    """Ask the provider for something."""
    caller, provider = pair
    data = json.dumps(arguments)
    return caller.run("call", provider.address, need, "-d", data, "--json", *options)


def proposal(number: int, text: str) -> bytes:
    """Return a candidate as a peer sends it."""
    message = {
        "action": "protocolNegotiation",
        "sequenceId": number,
        "candidateProtocols": text,
        "modificationSummary": "as before" if number else "",
        "status": "negotiating",
    }
    return json.dumps(message).encode()


def until_waiting(daemon: Anpd) -> str:
    """Wait until a negotiation asks the owner; return its id."""
    limit = time.monotonic() + WAIT
    while time.monotonic() < limit:
        waiting = [n for n in listed(daemon, "--open") if n["waiting"]]
        if waiting:
            return str(waiting[0]["id"])
        time.sleep(0.05)
    raise AssertionError(f"nothing waits\n{daemon.log()}")


@pytest.mark.slow
@clause("ANP-34")
async def test_failures_are_listed_with_reasons_and_rescued_after_restarts(
    pair: tuple[Anpd, Anpd], tmp_path: Path
) -> None:
    caller, provider = pair
    configure(provider, max_proposals=2, message_timeout=1.0)
    start(pair, tmp_path)
    amount, label = random.randint(1, 10**6), "x"
    bad = propose(Demand(Need("place_order"), {"amount": "many", "label": label}))
    # A timeout: a peer that says nothing about a counter.
    async with raw_peer(provider.url, provider.did) as peer:
        await peer.open()
        await peer.send_meta(proposal(0, bad))
        assert (await peer.hear_meta())["status"] == "negotiating"
        assert (await peer.hear_meta())["status"] == "rejected"
    # A round limit: a peer that proposes the same again.
    async with raw_peer(provider.url, provider.did) as peer:
        await peer.open()
        await peer.send_meta(proposal(0, bad))
        assert (await peer.hear_meta())["status"] == "negotiating"
        await peer.send_meta(proposal(2, bad))
        assert (await peer.hear_meta())["status"] == "rejected"
    # A task whose data does not fit, given up by the caller.
    wrong = call(pair, "place_order", amount="many", label=label)
    assert wrong.code == 2
    # A refusal: nothing is named, and what has effects is not chosen by its shape.
    refused = call(pair, "buy me something", amount=amount, label=label)
    assert refused.code == 6
    found = {n["outcome"]: n for n in reversed(listed(provider))}
    assert found.keys() == {"timeout", "rounds", "rejected"}
    assert "no answer of the peer in 1 s" in found["timeout"]["reason"]
    assert "no agreement within 2 rounds" in found["rounds"]["reason"]
    assert "shop.place_order" in found["rejected"]["reason"]
    assert all(n["outcome"] == "rejected" for n in listed(caller))

    # Both owners say what they think of it, and both daemons are started anew.
    rejected = str(found["rejected"]["id"])
    provider.ok("negotiations", "hint", rejected, "place_order is what they mean")
    provider.ok("negotiations", "decide", rejected, "accept", "--note", "I know them")
    lost = next(n for n in listed(caller) if "cannot use this" in n["reason"])
    turns = caller.ok("negotiations", "show", lost["id"], "--json").json()["turns"]
    document = turns[0]["candidate"]
    edited = document.replace('"type": "string"', '"type": "integer"', 1)
    assert edited != document
    (tmp_path / "edited.md").write_text(edited)
    caller.ok(
        *("negotiations", "decide", lost["id"], "edit"),
        *("--file", str(tmp_path / "edited.md")),
    )
    restart(pair)

    # The provider's word lets the refused document through.
    rescued = call(pair, "buy me something", amount=amount, label=label)
    assert rescued.code == 0, rescued.stderr
    assert rescued.json()["output"] == {"total": amount * 3}
    # The requester's edit is proposed in place of what the data says.
    second = call(pair, "place_order", amount=amount + 1, label=label)
    assert second.code == 0, second.stderr
    assert second.json()["output"] == {"total": (amount + 1) * 3}
    shown = caller.ok("negotiations", "show", newest(caller)["id"], "--json").json()
    assert shown["turns"][0]["candidate"] == edited
    assert shown["verdicts"][0]["by"] == "owner"
    words = provider.ok("negotiations", "decisions", "--json").json()["decisions"]
    assert {word["verdict"] for word in words} == {"hint", "accept"}
    assert all(word["used_by"] for word in words), "each word counts once"
    text = provider.ok("negotiations", "show", rejected).stdout
    assert "I know them" in text
    assert "used by" in text


@pytest.mark.slow
@clause("ANP-34")
def test_a_pending_approval_is_told_to_the_caller_and_taken_up_later(
    pair: tuple[Anpd, Anpd], tmp_path: Path
) -> None:
    caller, provider = pair
    configure(provider, approve="first-use", approval_wait=0.2)
    start(pair, tmp_path)
    pending = call(pair, "place_order", amount=1, label="x")
    assert pending.code == 7
    problem = pending.json()
    assert (problem["kind"], problem["retry_after"]) == ("approval_pending", 60.0)
    [waiting] = listed(provider, "--open")
    assert waiting["outcome"] == "approval-pending"
    assert [n["outcome"] for n in listed(caller)] == ["peer-approval-pending"]
    assert listed(caller, "--open") == [], "its owner has nothing to do"
    shown = provider.ok("negotiations", "show", waiting["id"]).stdout
    assert "may call: shop.place_order" in shown
    assert f"negotiations decide {waiting['id']} accept" in shown
    # Asked again, only the newest one waits.
    assert call(pair, "place_order", amount=1, label="x").code == 7
    [waiting] = listed(provider, "--open")
    provider.ok("negotiations", "decide", waiting["id"], "accept")
    assert listed(provider, "--open") == []
    restart(pair)
    assert call(pair, "place_order", amount=2, label="x").json()["output"] == {
        "total": 6
    }
    offers = [n["proposals"] for n in listed(caller)]
    assert offers == [1, 1, 1]
    texts = {
        caller.ok("negotiations", "show", n["id"], "--text").stdout
        for n in listed(caller)
    }
    assert len(texts) == 1, "the same bytes were offered again"


@pytest.mark.slow
@clause("ANP-34")
def test_an_owner_who_answers_in_time_lets_the_running_negotiation_go_on(
    pair: tuple[Anpd, Anpd], tmp_path: Path
) -> None:
    caller, provider = pair
    configure(provider, approve="side-effects")
    start(pair, tmp_path)
    needs = {"accept": "place_order", "reject": "shop.place_order"}
    for said, code in (("accept", 0), ("reject", 6)):
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "anp", "--home", str(caller.home)),
                *("call", provider.address, needs[said]),
                *("-d", '{"amount": 2, "label": "x"}'),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        name = until_waiting(provider)
        provider.ok("negotiations", "decide", name, said, "--note", "as I said")
        stdout, stderr = process.communicate(timeout=WAIT)
        assert process.returncode == code, stdout + stderr
        if said == "reject":
            assert "as I said" in stderr


@pytest.mark.slow
def test_a_read_only_capability_needs_no_word_about_side_effects(
    pair: tuple[Anpd, Anpd], tmp_path: Path
) -> None:
    _, provider = pair
    configure(provider, approve="side-effects", approval_wait=0.0)
    start(pair, tmp_path)
    assert call(pair, "place_order", amount=1, label="x").code == 7
    provider.ok(
        *("attach", "python", "shop:place_order", "--expose", "*", "--name", "shop"),
        *("--read-only", "place_order"),
        cwd=tmp_path,
    )
    assert call(pair, "place_order", amount=1, label="x").code == 0


@pytest.mark.slow
def test_always_asks_for_each_agreement_and_never_for_a_call_under_one(
    pair: tuple[Anpd, Anpd], tmp_path: Path
) -> None:
    _, provider = pair
    configure(provider, approve="always", approval_wait=0.0)
    start(pair, tmp_path)
    for need in ("place_order", "shop.place_order"):
        assert call(pair, need, amount=1, label="x").code == 7
        [waiting] = listed(provider, "--open")
        provider.ok("negotiations", "decide", waiting["id"], "accept")
        assert call(pair, need, amount=1, label="x").json()["source"] == "negotiated"
        assert call(pair, need, amount=2, label="x").json()["source"] == "agreement"


@pytest.mark.slow
def test_the_requesters_owner_is_asked_before_anything_is_proposed(
    pair: tuple[Anpd, Anpd], tmp_path: Path
) -> None:
    caller, _ = pair
    configure(caller, approve="first-use", approval_wait=0.0)
    start(pair, tmp_path)
    pending = call(pair, "place_order", amount=1, label="x")
    assert pending.code == 7
    [waiting] = listed(caller, "--open")
    assert waiting["proposals"] == 0, "nothing was sent"
    assert f"decide {waiting['id']} accept" in pending.stderr
    caller.ok("negotiations", "decide", waiting["id"], "accept")
    assert call(pair, "place_order", amount=1, label="x").code == 0


@pytest.mark.slow
def test_a_decision_about_nothing_says_so_in_one_line(
    pair: tuple[Anpd, Anpd], tmp_path: Path
) -> None:
    _, provider = pair
    start(pair, tmp_path)
    assert call(pair, "place_order", amount=1, label="x").code == 0
    agreed = str(newest(provider)["id"])
    bad = tmp_path / "bad.md"
    bad.write_text("no document")
    for words, what in (
        (("decide", agreed, "accept"), "ended in an agreement"),
        (("decide", "nothing", "accept"), "no negotiation begins with"),
        (("decide", agreed, "edit"), "--file"),
        (("decide", agreed, "edit", "--file", str(bad)), "edited protocol text"),
        (("decide", agreed, "perhaps"), "accept, reject or edit"),
        (("cancel", agreed), "does not run"),
        (("hint", agreed, " "), "the hint is empty"),
    ):
        ended = provider.run("negotiations", *words)
        assert ended.code == 2, (words, ended)
        assert what in ended.stderr
        assert ended.stderr.count("\n") == 1
