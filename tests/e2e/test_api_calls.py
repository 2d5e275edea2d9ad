"""Calls over the local API, through two daemons: results, events, keys, cancelling."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from tests.e2e.daemons import Anpd
from tests.e2e.owner import owner_client

SHOP = """
import time

calls = []


def twice(number: int) -> dict[str, int]:
    return {"twice": number * 2}


def count(step: int) -> dict[str, int]:
    calls.append(step)
    return {"calls": len(calls)}


def slow(seconds: float) -> dict[str, float]:
    time.sleep(seconds)
    return {"slept": seconds}
"""


class Pair:
    """A caller's API, and the address of a provider."""

    def __init__(self, caller: Anpd, provider: Anpd) -> None:
        self.caller = caller
        self.provider = provider
        self.api = owner_client(caller.home, timeout=60)

    def body(self, need: str, **more: Any) -> dict[str, Any]:
        return {"peer": self.provider.address, "need": need, **more}

    def events(self, path: str) -> Iterator[dict[str, Any]]:
        with self.api.stream("GET", path) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    yield json.loads(line.removeprefix("data: "))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    (folder / "api_shop.py").write_text(SHOP)
    provider = Anpd(folder / "provider")
    for name in ("twice", "count", "slow"):
        provider.ok(
            *("attach", "python", "--expose", "*", f"api_shop:{name}"), cwd=folder
        )
    with provider.up(), Anpd(folder / "caller").up() as caller:
        yield Pair(caller, provider)


def schema_of(pair: Pair, name: str) -> Draft202012Validator:
    """Return what checks an answer against the OpenAPI document."""
    document = pair.api.get("/v1/openapi.json").json()
    schema = {
        "$ref": f"#/components/schemas/{name}",
        "components": document["components"],
    }
    return Draft202012Validator(schema)


def test_a_call_gives_its_result_as_the_document_says(pair: Pair) -> None:
    answer = pair.api.post("/v1/calls", json=pair.body("twice", input={"number": 4}))
    assert answer.status_code == 200
    assert answer.json()["output"] == {"twice": 8}
    schema_of(pair, "CallResult").validate(answer.json())
    for path, name in (
        ("/v1/info", "Info"),
        ("/v1/protocols", "Protocols"),
        ("/v1/negotiations", "Negotiations"),
        ("/v1/peers", "Peers"),
        ("/v1/spend", "Spend"),
        ("/v1/history?window=day", "HistoryView"),
    ):
        schema_of(pair, name).validate(pair.api.get(path).json())
    one = pair.api.get("/v1/protocols").json()["protocols"][0]["hash"]
    shown = pair.api.get(f"/v1/protocols/{one}").json()
    schema_of(pair, "ProtocolDetails").validate(shown)
    offers = pair.api.get("/v1/peers/offers", params={"peer": pair.provider.address})
    schema_of(pair, "Offers").validate(offers.json())
    assert offers.json()["publishes"]


def test_an_asynchronous_call_is_followed_by_its_events(pair: Pair) -> None:
    started = pair.api.post(
        "/v1/calls",
        json=pair.body("Twice", input={"number": 5}),
        headers={"prefer": "respond-async, wait=3"},
    )
    assert started.status_code == 202
    schema_of(pair, "Call").validate(started.json())
    path = started.headers["location"]
    seen = list(pair.events(f"{path}/events"))
    types = [event["type"] for event in seen]
    assert types[0] == "call.started"
    assert types[-1] == "call.done"
    assert types.count("negotiation.turn") >= 2
    assert [event["number"] for event in seen] == sorted(e["number"] for e in seen)
    # Who comes late sees the same, and the result is kept.
    assert [event["type"] for event in pair.events(f"{path}/events")] == types
    call = pair.api.get(path).json()
    assert call["result"]["output"] == {"twice": 10}
    assert call["negotiations"]


def test_a_key_makes_a_repeated_call_one_call(pair: Pair) -> None:
    body = pair.body("count", input={"step": 1}, idempotency_key="once")
    first, again = (pair.api.post("/v1/calls", json=body).json() for _ in range(2))
    assert again == first
    other = {**body, "input": {"step": 2}}
    refused = pair.api.post("/v1/calls", json=other)
    assert refused.status_code == 409
    del other["idempotency_key"]
    after = pair.api.post("/v1/calls", json=other).json()
    assert after["output"]["calls"] == first["output"]["calls"] + 1


def test_a_cancelled_call_ends_at_once(pair: Pair) -> None:
    started = pair.api.post(
        "/v1/calls",
        json=pair.body("slow", input={"seconds": 20}),
        headers={"prefer": "respond-async"},
    ).json()
    path = f"/v1/calls/{started['id']}"
    began = time.monotonic()
    ended = pair.api.post(f"{path}/cancel", json={}).json()
    assert (ended["state"], ended["problem"]["kind"]) == ("cancelled", "interrupted")
    assert time.monotonic() - began < 15
    assert [event["type"] for event in pair.events(f"{path}/events")][-1] == (
        "call.cancelled"
    )


def test_a_call_whose_caller_hangs_up_is_taken_back(pair: Pair) -> None:
    with pair.api.stream("GET", "/v1/events") as stream:
        lines = stream.iter_lines()
        next(lines)
        body = pair.body("slow", input={"seconds": 15.5})
        with pytest.raises(httpx.ReadTimeout):
            pair.api.post("/v1/calls", json=body, timeout=1.0)
        types = (
            json.loads(line.removeprefix("data: "))["type"]
            for line in lines
            if line.startswith("data: ")
        )
        ends = ("call.cancelled", "call.done", "call.failed")
        assert next(one for one in types if one in ends) == "call.cancelled"


def test_lists_come_in_pages(pair: Pair) -> None:
    for need in ("twice for page one", "twice for page two"):
        pair.api.post("/v1/calls", json=pair.body(need, input={"number": 1}))
    everything = pair.api.get("/v1/protocols").json()["protocols"]
    assert len(everything) >= 2
    paged: list[Any] = []
    params: dict[str, Any] = {"limit": 1}
    while True:
        page = pair.api.get("/v1/protocols", params=params).json()
        paged += page["protocols"]
        if page["next"] is None:
            break
        params["after"] = page["next"]
    # A page shows its newest entries first; the pages follow one another by key.
    assert sorted(map(str, paged)) == sorted(map(str, everything))
    gone = pair.api.get("/v1/negotiations", params={"after": "nothing"})
    assert gone.status_code == 400


def test_a_revoked_protocol_is_refused_until_it_is_approved_again(pair: Pair) -> None:
    body = pair.body("twice", input={"number": 1})
    digest = pair.api.post("/v1/calls", json=body).json()["protocol"]
    path = f"/v1/protocols/{digest[:12]}"
    tested = pair.api.post(f"{path}/test", json={}, timeout=60).json()
    assert tested["passed"], tested
    revoked = pair.api.post(f"{path}/revoke", json={}).json()
    assert revoked["revoked"] is True
    assert revoked["channels_closed"] >= 1
    refused = pair.api.post("/v1/calls", json=body)
    # The owner withdrew the capability, so the call waits for the owner.
    assert (refused.status_code, refused.json()["state"]) == (202, "waiting")
    assert refused.json()["problem"]["kind"] == "approval_pending"
    pair.api.post(f"{path}/approve", json={})
    assert pair.api.post("/v1/calls", json=body).json()["source"] == "agreement"


def test_the_peers_own_error_is_no_fault_of_the_server(pair: Pair) -> None:
    answer = pair.api.post("/v1/calls", json={"peer": "ws://127.0.0.1:9/", "need": "x"})
    assert answer.status_code == 424
    assert answer.json()["kind"] == "peer_unreachable"
    schema_of(pair, "Problem").validate(answer.json())


def test_the_caller_can_show_where_a_client_of_his_finds_the_api(pair: Pair) -> None:
    document = pair.api.get("/v1/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    names = [
        operation["operationId"]
        for path in document["paths"].values()
        for operation in path.values()
    ]
    assert len(names) == len(set(names)) > 40
    assert Path(pair.caller.home / "api.json").exists()


def test_the_owner_tries_a_capability_without_a_protocol(pair: Pair) -> None:
    owner = pair.provider
    given = owner.ok("capabilities", "test", "twice", "-d", '{"number": 21}')
    assert given.json() == {"twice": 42}
    wrong = owner.run("capabilities", "test", "twice", "-d", '{"number": "x"}')
    assert wrong.code == 10
    assert "answered 400" in wrong.stderr
    nobody = owner.run("capabilities", "test", "thrice")
    assert nobody.code == 2
    assert "no capability is called thrice" in nobody.stderr
