"""The official SDK as a live peer, in both roles."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from tests.clauses import clause
from tests.e2e.daemons import Anpd
from tests.e2e.scripted_model import calls_tool, says, scripted_model
from tests.environments import side_python

ROOT = Path(__file__).parent.parent.parent
PEER = ROOT / "tests" / "sdk" / "peer.py"
CATALOGUE = ROOT / "examples" / "catalogue.py"

ATTACH = (
    *("attach", "python", str(CATALOGUE), "--expose", "*"),
    # Rules serve what a sentence names if it changes nothing.
    *("--read-only", "get_product"),
)

PROSE = """
Product lookup between two agents.

The asking agent names the product it is interested in by the code that is printed on
the box, together with a reference of its own choice. The answering agent looks the code
up with get_product and tells the product's name, what it is and what it costs, in the
currency of the shop, and repeats the reference.
"""

CAPABILITY = "get_product(product_id) answers with name, description and price."


def schema(**properties: Any) -> dict[str, Any]:
    """Return an object schema of which everything is required."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
    }


TEXT = {"type": "string"}
QUERY = schema(
    kind={"type": "string", "const": "product-lookup"},
    messageId=TEXT,
    **{"product-id": {"type": "string", "description": "Printed on the box."}},
)
STATE = schema(code={"type": "integer"}, message=TEXT)
PRODUCT = schema(
    ProductID=TEXT,
    **{"product-name": TEXT, "PRODUCT_DESCRIPTION": TEXT},
    price={"type": "number"},
    Currency=TEXT,
)
FOUND = {
    **schema(messageId=TEXT, status=STATE, product=PRODUCT),
    "required": ["messageId", "status"],
}

STRUCTURED = f"""
# Goal

Ask a shop for one product with get_product and learn its name and its price.

# How it goes

1. The client asks with a *query*.
2. The shop looks the product up and answers with a *finding*.

# Messages

Both are JSON objects in UTF-8.

## Query (request)

```json
{json.dumps(QUERY, indent=4)}
```

## Finding (response)

`product` is there when `status.code` is 200.

```json
{json.dumps(FOUND, indent=4)}
```

# When things go wrong

`status.code` is 404 when there is no such product and 500 when the shop cannot tell;
`status.message` says it in words.
"""


class SdkPeer:
    """A process that plays one role with the SDK."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.events: list[dict[str, Any]] = []

    def wait_for(self, event: str) -> dict[str, Any]:
        """Read events until one of this kind, and return it."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.events.append(json.loads(line))
            if self.events[-1]["event"] == event:
                return self.events[-1]
        raise AssertionError(f"no {event}; the SDK ended after {self.events}")

    def wait(self) -> int:
        """Wait for its end and return its exit code."""
        return self._process.wait(timeout=60)


@contextlib.contextmanager
def sdk_peer(folder: Path, order: dict[str, Any]) -> Iterator[SdkPeer]:
    """Start the SDK with an order; its log goes to a file in `folder`."""
    log: IO[str]
    with (folder / "sdk.log").open("w") as log:
        process = subprocess.Popen(
            # Elsewhere and isolated, so that `anp` is the SDK's.
            [side_python("sdk"), "-I", str(PEER)],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert process.stdin is not None
    process.stdin.write(json.dumps(order) + "\n")
    process.stdin.flush()
    try:
        yield SdkPeer(process)
    except BaseException:
        print((folder / "sdk.log").read_text()[-6000:])
        raise
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture(params=["did:key", "did:all"])
def daemon(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Anpd]:
    """A daemon with its default identity, or with `--method did:all`."""
    side_python("sdk")
    made = Anpd(tmp_path / "home")
    made.ok("init", *(["--method", "did:all"] if request.param == "did:all" else []))
    with made.up():
        assert made.did.startswith(request.param)
        yield made


def wait_for_question(daemon: Anpd) -> dict[str, Any]:
    """Return what waits for the owner, as soon as something does."""
    for _ in range(100):
        listed = daemon.ok("approvals", "list", "--json").json()["negotiations"]
        if listed:
            found: dict[str, Any] = listed[0]
            return found
    raise AssertionError("nothing waits for the owner")


def verdict(status: str, document: str = "", summary: str = "") -> Any:
    """Return what the SDK wants its model to say about a candidate."""
    return says(
        {
            "status": status,
            "candidate_protocol": document,
            "modification_summary": summary,
        }
    )


def did_all(daemon: Anpd) -> str:
    """Return the address the SDK can verify (WIRE row 16)."""
    did: str = daemon.ok("identity", "show", "--json").json()["did_all"]
    return did


def initiate(daemon: Anpd, folder: Path, model: str, *requests: Any) -> Any:
    return sdk_peer(
        folder,
        {
            "role": "initiator",
            "url": daemon.url,
            "remote_did": did_all(daemon),
            "model": model,
            "capability": CAPABILITY,
            "requirement": "Product information by product id",
            "input": "The product id, a text",
            "output": "Name, description, price and currency",
            "requests": list(requests),
        },
    )


@pytest.mark.slow
@clause("ANP-3", "ANP-21", "ANP-41", "WIRE row 37", "WIRE row 38")
def test_the_sdk_calls_with_a_document_of_schemas_which_is_accepted(
    daemon: Anpd, tmp_path: Path
) -> None:
    daemon.ok(*ATTACH)
    with (
        scripted_model(says(STRUCTURED)) as model,
        initiate(
            daemon,
            tmp_path,
            model.url,
            {"kind": "product-lookup", "messageId": "q1", "product-id": "P12346"},
            {"kind": "product-lookup", "messageId": "q2", "product-id": "P0"},
        ) as peer,
    ):
        agreed = peer.wait_for("negotiated")
        assert (agreed["accepted"], agreed["protocol"]) == (True, STRUCTURED)
        assert peer.wait_for("code")["generated"]
        good = peer.wait_for("answer")["message"]
        bad = peer.wait_for("answer")["message"]
        assert peer.wait() == 0
    assert model.left == []
    assert (good["messageId"], good["status"]["code"]) == ("q1", 200)
    assert good["product"]["product-name"] == "Mechanical keyboard"
    assert good["product"]["price"] == 89.5
    assert (bad["messageId"], bad["status"]["code"]) == ("q2", 404)
    assert "product" not in bad


@pytest.mark.slow
@clause("ANP-34")
def test_the_sdk_calls_what_has_side_effects_once_the_owner_accepts(
    daemon: Anpd, tmp_path: Path
) -> None:
    attached = daemon.ok(*ATTACH[:-2]).stdout
    assert "not marked read-only: catalogue.get_product" in attached
    assert "--read-only get_product" in attached
    with (
        scripted_model(says(STRUCTURED)) as model,
        initiate(
            daemon,
            tmp_path,
            model.url,
            {"kind": "product-lookup", "messageId": "q1", "product-id": "P12346"},
            {"kind": "product-lookup", "messageId": "q2", "product-id": "P12346"},
        ) as peer,
    ):
        peer.wait_for("open")
        waiting = wait_for_question(daemon)
        shown = daemon.ok("approvals", "show", waiting["id"]).stdout
        assert "it does not name catalogue.get_product" in shown
        daemon.ok("approvals", "accept", waiting["id"])
        agreed = peer.wait_for("negotiated")
        assert (agreed["accepted"], agreed["protocol"]) == (True, STRUCTURED)
        answers = [peer.wait_for("answer")["message"] for _ in range(2)]
        assert peer.wait() == 0
    assert [one["product"]["price"] for one in answers] == [89.5, 89.5]
    assert daemon.ok("approvals", "list", "--json").json()["negotiations"] == []


@pytest.mark.slow
@clause("ANP-24", "ANP-28", "WIRE row 37", "WIRE row 38")
def test_the_sdk_calls_with_prose_and_accepts_our_counter(
    daemon: Anpd, tmp_path: Path
) -> None:
    daemon.ok(*ATTACH)
    with (
        scripted_model(says(PROSE), verdict("accepted")) as model,
        initiate(
            daemon,
            tmp_path,
            model.url,
            {"messageId": "q1", "input": {"product_id": "P20001"}},
        ) as peer,
    ):
        agreed = peer.wait_for("negotiated")
        assert agreed["accepted"]
        assert agreed["protocol"] != PROSE
        # What the SDK's model judged is what was agreed.
        assert agreed["protocol"] in model.asked[1][1]["content"]
        assert peer.wait_for("code")["generated"]
        answer = peer.wait_for("answer")["message"]
        assert peer.wait() == 0
    assert model.left == []
    assert answer["messageId"] == "q1"
    assert answer["output"]["productName"] == "Écran 27 pouces"
    listed = daemon.ok("negotiations", "list", "--json").json()["negotiations"]
    assert [item["proposals"] for item in listed] == [2]


def call(daemon: Anpd, peer: SdkPeer, product: str) -> Any:
    at = peer.wait_for("listening")
    return daemon.ok(
        *("call", f"{at['url']}#{at['did']}", "get_product: one product of the shop"),
        *("-d", json.dumps({"productId": product}), "--json"),
    ).json()


@pytest.mark.slow
@clause("ANP-3", "ANP-24", "WIRE row 16", "WIRE row 29", "WIRE row 41", "WIRE row 48")
def test_the_sdk_is_called_and_counters_with_schemas_that_we_accept(
    daemon: Anpd, tmp_path: Path
) -> None:
    product = {
        "ProductID": "P77",
        "product-name": "Lamp",
        "PRODUCT_DESCRIPTION": "A lamp.",
        "price": 12,
        "Currency": "CHF",
    }
    with (
        scripted_model(
            calls_tool(
                "get_capability_info",
                requirement="product",
                input_description="id",
                output_description="product",
            ),
            verdict("negotiating", STRUCTURED, "our own names"),
        ) as model,
        sdk_peer(
            tmp_path,
            {
                "role": "responder",
                "model": model.url,
                "capability": CAPABILITY,
                "id_name": "messageId",
                "reply": {"status": {"code": 200, "message": "ok"}, "product": product},
            },
        ) as peer,
    ):
        result = call(daemon, peer, "P77")
        asked = peer.wait_for("request")["message"]
        agreed = next(e for e in peer.events if e["event"] == "negotiated")
    assert model.left == []
    assert (agreed["accepted"], agreed["protocol"]) == (True, STRUCTURED)
    assert (asked["kind"], asked["product-id"]) == ("product-lookup", "P77")
    assert result["output"] == product
    assert (result["source"], result["proposals"]) == ("negotiated", 2)


@pytest.mark.slow
@clause("ANP-21", "WIRE row 16", "WIRE row 29", "WIRE row 37")
def test_the_sdk_is_called_and_counters_in_prose_which_we_counter_once(
    daemon: Anpd, tmp_path: Path
) -> None:
    with (
        scripted_model(
            verdict("negotiating", PROSE, "in plain words"),
            verdict("accepted"),
        ) as model,
        sdk_peer(
            tmp_path,
            {
                "role": "responder",
                "model": model.url,
                "capability": CAPABILITY,
                "id_name": "messageId",
                "reply": {
                    "status": {"code": 200, "message": "ok"},
                    "output": {"name": "Lamp", "price": 12},
                },
            },
        ) as peer,
    ):
        result = call(daemon, peer, "P77")
        asked = peer.wait_for("request")["message"]
        agreed = next(e for e in peer.events if e["event"] == "negotiated")
    assert model.left == []
    assert agreed["accepted"]
    assert agreed["protocol"] not in {PROSE, STRUCTURED}
    assert asked["input"] == {"productId": "P77"}
    assert result["output"] == {"name": "Lamp", "price": 12}
    assert (result["source"], result["proposals"]) == ("negotiated", 3)
