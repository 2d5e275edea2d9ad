"""Attached agents whose card declares the intent extension (seed 004)."""

from __future__ import annotations

from typing import Any

import pytest

from anp.protocols.a2a.intents import read_skill_schemas
from anp.protocols.a2a.words import INTENT_URI
from tests.anp.sidecar.attachments.web import Asked, answer, attached, call, serving
from tests.clauses import clause

SCHEMA = {
    "type": "object",
    "properties": {
        "num1": {"type": "int", "description": "The first number"},
        "num2": {"type": "int", "description": "The second number"},
        "note": {"type": "str"},
    },
    "required": ["num1", "num2"],
}


def extension(*skills: Any, **more: Any) -> dict[str, Any]:
    return {"uri": INTENT_URI, "params": {"skills": list(skills)}, **more}


def schema_of(name: str, schema: Any = SCHEMA) -> dict[str, Any]:
    return {"id": name, "inputSchema": schema}


def card(url: str, *extensions: Any) -> dict[str, Any]:
    """Return a card of 0.3, as the application of the seed reads it."""
    names = ("ai-calculate", "odd", "talk")
    return {
        "name": "counter",
        "description": "Counts.",
        "version": "1",
        "url": f"{url}/rpc",
        "preferredTransport": "JSONRPC",
        "protocolVersion": "0.3.0",
        "capabilities": {"streaming": False, "extensions": list(extensions)},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain", "application/json"],
        "skills": [
            {
                "id": name,
                "name": name,
                "description": "Does it.",
                "tags": ["numbers", name],
                "examples": ["101加102等于几?"],
            }
            for name in names
        ],
    }


class Counter:
    """Adds the numbers in the slots of an intent."""

    def __init__(self, *extensions: Any) -> None:
        self.extensions = extensions
        self.url = ""
        self.heads: dict[str, str] = {}
        self.message: dict[str, Any] = {}

    def __call__(self, asked: Asked) -> bytes:
        if asked.method == "GET":
            return answer(card(self.url, *self.extensions))
        said = asked.json()
        self.heads, self.message = dict(asked.headers), said["params"]["message"]
        intents = self.message.get("metadata", {}).get("intentInfos", [{}])
        slots = {one["name"]: one["value"] for one in intents[0].get("slots", [])}
        total = sum(int(text) for name, text in slots.items() if name != "note")
        result = {
            "kind": "message",
            "messageId": "m",
            "role": "agent",
            "parts": [{"kind": "text", "text": str(total)}],
        }
        return answer({"jsonrpc": "2.0", "id": said["id"], "result": result})


@clause("INT-1", "INT-3", "INT-4", "INT-5", "INT-6", "INT-7", "INT-8", "INT-9")
@clause("INT-10", "INT-11", "INT-Q1", "INT-Q6")
async def test_arguments_go_as_slots_of_an_intent() -> None:
    agent = Counter(extension(schema_of("ai-calculate")))
    async with serving(agent) as web:
        agent.url = web.url
        async with attached("a2a", web.url) as my:
            found = {one.name: one for one in my.capabilities()}
            capability = found["my.ai-calculate"]
            assert isinstance(capability.input_schema, dict)
            properties = capability.input_schema["properties"]
            assert properties["num1"]["type"] == "integer"
            assert capability.tags == ("numbers", "ai-calculate")
            assert capability.examples == ("101加102等于几?",)
            assert capability.output_modes == ("text/plain", "application/json")
            large = 9007199254740993
            told = await call(my, "ai-calculate", num1=101, num2=large, note=None)
            assert told == {"text": str(101 + large)}
    (intent,) = agent.message["metadata"]["intentInfos"]
    assert intent == {
        "intent": "ai-calculate",
        "slots": [
            {"name": "num1", "value": "101", "normValue": "101"},
            {"name": "num2", "value": str(large), "normValue": str(large)},
        ],
    }
    assert agent.message["extensions"] == [INTENT_URI]
    assert agent.heads["a2a-extensions"] == INTENT_URI
    assert agent.heads["x-a2a-extensions"] == INTENT_URI
    # Words go along for an agent that looks at nothing else.
    (part,) = agent.message["parts"]
    assert part["kind"] == "text"
    assert part["text"].startswith("ai-calculate {")


@clause("INT-3", "INT-7")
async def test_a_skill_without_a_schema_is_named_all_the_same() -> None:
    agent = Counter({"uri": INTENT_URI})
    async with serving(agent) as web:
        agent.url = web.url
        async with attached("a2a", web.url) as my:
            await call(my, "talk", text="hello")
    assert agent.message["metadata"]["intentInfos"] == [{"intent": "talk", "slots": []}]
    assert agent.message["parts"][0]["text"] == "hello"


async def test_an_agent_without_the_extension_gets_no_intents() -> None:
    agent = Counter({"uri": "https://other.example/extension", "params": {"skills": 5}})
    async with serving(agent) as web:
        agent.url = web.url
        async with attached("a2a", web.url) as my:
            await call(my, "talk", text="hello")
    assert "intentInfos" not in agent.message["metadata"]
    assert "extensions" not in agent.message
    assert "a2a-extensions" not in agent.heads


@clause("INT-Q1", "INT-Q7")
async def test_a_schema_of_unknown_types_leaves_its_skill_out() -> None:
    broken = schema_of("odd", {"type": "object", "properties": {"a": {"type": "i32"}}})
    agent = Counter(extension(broken, schema_of("nowhere"), schema_of("talk")))
    async with serving(agent) as web:
        agent.url = web.url
        async with attached("a2a", web.url) as my:
            assert {one.name for one in my.capabilities()} == {
                "my.ai-calculate",
                "my.talk",
            }
            assert "'odd'" in "\n".join(my.skipped)


@clause("INT-Q7")
@pytest.mark.parametrize(
    ("found", "names"),
    [
        (extension(schema_of("a"), schema_of("a", {"type": "list"})), {"a"}),
        ({"uri": INTENT_URI, "params": {}}, set()),
        ({"uri": INTENT_URI, "params": []}, set()),
        ({"uri": INTENT_URI, "params": {"skills": {}}}, set()),
        (extension(5, None, {}, {"id": 5}, {"id": "a"}), set()),
        (extension(schema_of("a", {"properties": {}})), {"a"}),
        (extension(schema_of("a", [])), set()),
    ],
)
def test_odd_declarations_of_others_are_let_be(found: Any, names: set[str]) -> None:
    twice = {"capabilities": {"extensions": [found, found, None, 5]}}
    read = read_skill_schemas(twice)
    assert read.is_declared
    assert read.schemas.keys() == names


@pytest.mark.parametrize("found", [None, [], {}, {"capabilities": []}])
def test_cards_without_it(found: Any) -> None:
    assert not read_skill_schemas(found).is_declared
