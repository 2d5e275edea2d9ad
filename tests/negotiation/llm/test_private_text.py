"""The owner's hints stand only where a model can choose, so they reach no peer."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from negotiation.document.reader import read_document
from negotiation.errors import CapabilityFailed, HalfError, MindError, MisuseError
from negotiation.llm.asking.questions import TEXT as FREE
from negotiation.llm.asking.questions import Question, ask_with, record
from negotiation.llm.assess import ShownMessages
from negotiation.llm.mind import LlmMind
from negotiation.mind import Accept, Counter, Demand, HalfSource, Offer, Reject, Side
from negotiation.need import Capability, Need
from negotiation.rules.rules import RulesMind
from negotiation.rules.rules import propose as plain
from negotiation.strict_json import Json
from tests.clauses import clause
from tests.negotiation.formats import BINARY, strict
from tests.negotiation.inprocess import InProcessHalf
from tests.negotiation.llm.scripted import (
    ScriptedModel,
    call,
    check_schema,
    link,
    offer_answer,
    prepared,
    reply_answer,
)
from tests.negotiation.llm.test_encodings import TOOLS

TEXT: dict[str, Any] = {"type": "string"}
HINT = "They pay late; the code word is KX-40117"

ENCODED: dict[str, Callable[[str], str]] = {
    "plain": str,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "hex": lambda text: text.encode().hex(),
    "reversed": lambda text: text[::-1],
    "interleaved": lambda text: ".".join(text),
    "codes": lambda text: " ".join(str(ord(one)) for one in text),
}
"Ways to write a text that no search for its words finds."

EXPRESSIONS: dict[str, Callable[[str], str]] = {
    **{
        name: lambda text, way=way: repr(way(text))  # type: ignore[misc]
        for name, way in ENCODED.items()
    },
    "chr": lambda text: "+".join(f"chr({ord(one)})" for one in text),
    "[::-1]": lambda text: f"{text[::-1]!r}[::-1]",
    "decoded": lambda text: f"bytes.fromhex({text.encode().hex()!r}).decode()",
}
"Expressions whose value is the text or one of its other forms."

SHOP = Capability(
    "shop.price",
    "Price of an article",
    strict(article=TEXT),
    strict(price={"type": "number"}),
    read_only=True,
)
STOCK = Capability("shop.stock", "Stock", strict(article=TEXT), strict(count=TEXT))
NEED = Need(
    "Cost of a ware", strict(ware=TEXT), strict(cost={"type": "number"}, note=TEXT)
)


def private_in(question: Question) -> str:
    """Return what a model can know of the hint from a question."""
    return HINT if HINT in question.system + question.user else ""


def free_texts(schema: Any, path: str = "") -> Iterator[str]:
    """Yield the places of an answer where a model may write what it likes."""
    if schema["type"] == "object":
        for name, one in schema["properties"].items():
            yield from free_texts(one, f"{path}/{name}")
    elif schema["type"] == "array" and schema.get("maxItems") != 0:
        yield from free_texts(schema["items"], f"{path}/*")
    elif schema["type"] == "string" and "enum" not in schema:
        yield path


class ObedientModel:
    """Writes the hint, in one form, wherever it may write a text and knows the hint.

    Args:
        form: The form of `ENCODED` or `EXPRESSIONS`.
        answers: Good answers by step, with `None` where the hint goes.
    """

    def __init__(self, form: str, answers: dict[str, Any] | None = None) -> None:
        self._form = form
        self._answers = answers or {}
        self.asked: list[Question] = []

    async def ask(self, question: Question) -> Json:
        self.asked.append(question)
        check_schema(question.schema)
        known = private_in(question)
        if question.step in self._answers:
            return self._with(self._answers[question.step], known)
        return self._made(question.schema, known)

    def _with(self, value: Any, known: str) -> Json:
        if value is None:
            return EXPRESSIONS[self._form](known) if known else "'in stock'"
        if isinstance(value, list):
            return [self._with(one, known) for one in value]
        if isinstance(value, dict):
            return {name: self._with(one, known) for name, one in value.items()}
        kept: Json = value
        return kept

    def _made(self, schema: Any, known: str) -> Json:
        if "enum" in schema:
            picked: Json = schema["enum"][-1]
            return picked
        match schema["type"]:
            case "string":
                return ENCODED.get(self._form, str)(known) if known else "well"
            case "boolean":
                return True
            case "array":
                count = min(schema.get("maxItems", 1), 1)
                return [self._made(schema["items"], known) for _ in range(count)]
        return {
            name: self._made(one, known) for name, one in schema["properties"].items()
        }


def tells(text: str) -> list[str]:
    """Return the forms of the hint that a text holds."""
    return [name for name, way in ENCODED.items() if way(HINT) in text]


async def everything(model: Any) -> list[str]:
    """Ask a mind all that it can be asked; return the texts that may travel."""
    told: list[str] = []
    offer = Offer((SHOP, STOCK), (HINT,))
    packed = Offer((TOOLS["binary"],), (HINT,))
    demand = Demand(NEED, {"ware": "A"}, (HINT,))
    bare = Demand(Need("Cost of a ware, with a note"), {"ware": "A"}, (HINT,))
    other = plain(Demand(Need("Weather", strict(at=TEXT), strict(rain=TEXT)), {}))
    options = "# Requirement\n\nCost\n" + "".join(
        f"\n# Option {one}\n\n{other.partition('# Flow')[2]}" for one in "12"
    )
    texts = [plain(demand), other, "Tell me a price.", BINARY.file("document.md")]
    for document in [*texts, options]:
        for side in (offer, packed, demand):
            told += await settled(LlmMind(model), document, side)
    mind = LlmMind(model)
    for one in (demand, bare):
        try:
            told.append(await mind.propose(one))
        except MindError as exc:
            told.append(str(exc))
    told.append((await mind.serve_text("What costs A?", offer)).reply)
    told += [await mind.answer("Why?", one) for one in (offer, demand)]
    shown = (ShownMessages("response 1", "{}"),)
    told += await mind.judge_messages(other, shown)
    told += await mind.judge_cases(other, shown)
    told.append(repr(await mind.judge_fault(other, shown[0], "bad")))
    told += [one.title for one in await mind.write_cases(other, demand)]
    return told


async def settled(mind: LlmMind, document: str, side: Side) -> list[str]:
    """Return the texts of a verdict and of the half after it."""
    told: list[str] = []
    try:
        verdict = await mind.judge(document, side, ())
        match verdict:
            case Accept():
                told.append((await prepared(mind, document, side)).text)
            case Counter():
                told += [verdict.document, verdict.summary]
            case Reject():
                told.append(verdict.reason)
        told.append((await mind.write_half(document, side, findings=("no",))).text)
    except (HalfError, MindError) as exc:
        told.append(str(exc))
    return told


@clause("ANP-34")
@pytest.mark.parametrize("form", ENCODED)
async def test_nothing_that_may_travel_holds_a_hint_in_any_form(form: str) -> None:
    model = ObedientModel(form)
    found = [text[:100] for text in await everything(model) if tells(text)]
    assert found == []


@clause("ANP-34")
async def test_a_prompt_with_a_hint_asks_only_for_choices() -> None:
    model = ObedientModel("plain")
    await everything(model)
    knowing = [one for one in model.asked if private_in(one)]
    assert {one.step: list(free_texts(one.schema)) for one in knowing} == {
        "select": [],
        "allow": [],
    }


def test_a_question_with_a_hint_and_a_free_text_is_our_bug() -> None:
    values = {"requirement": "x", "capabilities": "y", "hints": "z"}
    with pytest.raises(MisuseError, match="hints"):
        ask_with("select", values, schema=record(missing=FREE), max_tokens=1)


OFFERED = offer_answer(
    call("shop.price", link("shop.price:/article", of=["request:/ware"])),
    result=[
        link("result:/cost", of=["shop.price:/price"]),
        {"to": "result:/note", "how": "python", "from": ["request:/ware"]}
        | {"args": [None]},
    ],
)
REPLIED = reply_answer(
    [
        link("request:/article", of=["arguments:/ware"]),
        {"to": "request:/why", "how": "python", "from": ["arguments:/ware"]}
        | {"args": [None]},
    ]
)


async def sent_by(half: HalfSource, side: Side) -> str:
    """Return the bytes that a half sends, as text."""
    runner = InProcessHalf(half.text)
    if isinstance(side, Demand):
        return (await runner.encode_request("m", {"ware": "A"})).decode()

    async def on_call(name: str, given: Json) -> Json:
        if isinstance(given, dict) and given["article"] == "none":
            raise CapabilityFailed("404", "none")
        return {"price": 1.5}

    request = {"messageId": "m", "input": {"ware": "A"}}
    return (await runner.handle_request(json.dumps(request).encode(), on_call)).decode()


@clause("ANP-34")
@pytest.mark.parametrize("form", EXPRESSIONS)
async def test_an_expression_carries_no_hint_to_the_peer(form: str) -> None:
    asks = Need("price", strict(article=TEXT, why=TEXT), strict(price={}))
    wants = Need("price", strict(ware=TEXT), strict(price={}))
    cases: list[tuple[str, Side, dict[str, Any]]] = [
        (plain(Demand(NEED, {})), Offer((SHOP,), (HINT,)), {"offer": OFFERED}),
        (
            plain(Demand(asks, {})),
            Demand(wants, {"ware": "A"}, (HINT,)),
            {"reply": REPLIED},
        ),
    ]
    for document, side, answers in cases:
        mind = LlmMind(ObedientModel(form, answers))
        assert await mind.judge(document, side, ()) == Accept()
        half = await prepared(mind, document, side)
        assert tells(await sent_by(half, side)) == []
        assert "in stock" in await sent_by(half, side)
        assert not re.search(r"chr\(|fromhex|\[::-1\]", half.text)


@clause("ANP-34")
async def test_code_for_bytes_carries_no_hint() -> None:
    document = BINARY.file("document.md")
    model = ObedientModel("plain")
    mind = LlmMind(model)
    side = Offer((TOOLS["binary"],), (HINT,))
    await settled(mind, document, side)
    assert "offer" in {one.step for one in model.asked}
    for one in model.asked:
        assert not private_in(one) or one.step == "select"


@clause("ANP-34")
async def test_the_data_of_a_call_are_no_reason_for_a_peer() -> None:
    # The document asks for something else, so that a reason is wanted.
    other = plain(Demand(Need("Weather", strict(at=TEXT), strict(rain=TEXT)), {}))
    wants = Need("Cost of a ware", None, strict(cost={"type": "number"}))
    demand = Demand(wants, {"ware": HINT})
    no = reply_answer(usable=False, missing=HINT)
    wrong = reply_answer([], [link("result:/cost", "constant", json.dumps(HINT))])
    for answer in (no, wrong):
        model = ScriptedModel({"reply": [answer, answer]})
        verdict = await LlmMind(model).judge(other, demand, ())
        assert isinstance(verdict, Reject)
        assert HINT in model.asked[0].user
        # The owner is told why.
        assert "code word" in verdict.reason or "They pay" in verdict.reason
        assert verdict.told
        assert tells(verdict.told) == []
    findings = (f"{HINT!r} is not of type number",)
    for mind in (LlmMind(ScriptedModel({})), RulesMind()):
        verdict = await mind.judge(other, demand, (), findings=findings)
        told = verdict.summary if isinstance(verdict, Counter) else ""
        told += verdict.told if isinstance(verdict, Reject) else ""
        assert told
        assert tells(told) == []


# The choices that a hint may decide.


async def test_a_hint_chooses_among_what_is_exposed() -> None:
    answer = offer_answer(
        call("shop.price", link("shop.price:/article", of=["request:/ware"])),
        result=[
            link("result:/cost", of=["shop.price:/price"]),
            link("result:/note", "constant", '"x"'),
        ],
    )
    model = ScriptedModel(
        {"select": [{"capabilities": ["shop.price"]}], "offer": [answer]}
    )
    offer = Offer((SHOP, STOCK), (HINT,))
    verdict = await LlmMind(model).judge(plain(Demand(NEED, {})), offer, ())
    assert verdict == Accept()
    assert model.calls == {"select": 1, "offer": 1}
    assert HINT in model.asked[0].user
    assert "shop.stock" not in model.asked[1].user


async def test_a_hint_may_mean_that_nothing_is_served() -> None:
    model = ScriptedModel({"select": [{"capabilities": []}]})
    offer = Offer((SHOP, STOCK), (HINT,))
    mind = LlmMind(model)
    for _ in range(2):
        verdict = await mind.judge(plain(Demand(NEED, {})), offer, ())
        assert isinstance(verdict, Reject)
        assert "offered: shop.price, shop.stock" in verdict.reason
    assert model.calls == {"select": 1}
    spoken = await LlmMind(
        ScriptedModel({"select": [{"capabilities": []}]})
    ).serve_text("What costs A?", offer)
    assert spoken.capability == ""


@clause("ANP-34")
async def test_blanks_in_a_requirement_make_no_other_choice() -> None:
    # The owner's hint is found by the words, so that a peer could vary the rest.
    offer = Offer((SHOP, STOCK), (HINT,))
    asked = []
    for blanks in (" ", "  ", "\n\t"):
        model = ScriptedModel({"select": [{"capabilities": []}]})
        need = replace(NEED, requirement=f"Cost of{blanks}a ware")
        await LlmMind(model).judge(plain(Demand(need, {})), offer, ())
        asked.append(model.asked[0].user)
    assert len(set(asked)) == 1


async def test_a_hint_that_is_a_name_needs_no_question() -> None:
    # A repaired half calls what it called before.
    document = plain(Demand(NEED, {}))
    answer = {**OFFERED, "result": [OFFERED["result"][0]]}
    model = ScriptedModel({"offer": [answer, answer]})
    offer = Offer((SHOP, STOCK), ("shop.price",))
    await LlmMind(model).judge(document, offer, ())
    assert "shop.stock" not in model.asked[0].user
    assert set(model.calls) == {"offer"}


async def test_a_requesters_hint_may_refuse_a_document() -> None:
    document = plain(Demand(Need("price", strict(article=TEXT), strict(price={})), {}))
    wants = Need("price", strict(ware=TEXT), strict(price={}))
    demand = Demand(wants, {"ware": "A"}, (HINT,))
    reply = reply_answer([link("request:/article", of=["arguments:/ware"])])
    for accept in (True, False):
        model = ScriptedModel({"allow": [{"accept": accept}], "reply": [reply]})
        verdict = await LlmMind(model).judge(document, demand, ())
        assert isinstance(verdict, Accept if accept else Reject)
        assert model.calls["reply"] == accept
    assert read_document(document).is_json
