"""A model whose answers are written in the test, and a first contact around it."""

from __future__ import annotations

import json
from collections import Counter as Count
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jsonschema import Draft202012Validator

from negotiation.document.reader import read_document
from negotiation.errors import CapabilityFailed, HalfError, MindError
from negotiation.llm.asking.questions import Question
from negotiation.messages import Status
from negotiation.mind import (
    Accept,
    Counter,
    Demand,
    HalfSource,
    Mind,
    Offer,
    Reject,
    Side,
)
from negotiation.need import Schema
from negotiation.strict_json import Json
from negotiation.transcript import Direction, Turn
from negotiation.trial.acceptance import check_half, prepare_half
from negotiation.trial.trial import Findings
from tests.negotiation.inprocess import InProcessHalf, JsonschemaValidator, findings

SHAPES = {"each", "fallbacks", "pages", "joins", "again", "fails"}

Tool = Callable[[dict[str, Any]], Json]
Script = Mapping[str, Sequence[Any]]


_checked: set[str] = set()


def check_schema(schema: Schema) -> None:
    """Raise if the schema of an answer is none; the same one is looked at once."""
    text = json.dumps(schema)
    if text not in _checked:
        Draft202012Validator.check_schema(schema)
        _checked.add(text)


class ScriptedModel:
    """Gives the answers of each step in turn; one of a wrong form is a `MindError`."""

    def __init__(self, script: Script | None = None) -> None:
        self._script = {step: list(answers) for step, answers in (script or {}).items()}
        self.asked: list[Question] = []

    async def ask(self, question: Question) -> Json:
        self.asked.append(question)
        answers = self._script.get(question.step)
        if not answers:
            raise MindError(f"no answer is scripted for {question.step}")
        answer: Any = answers.pop(0)
        if callable(answer):
            answer = answer(question)
        check_schema(question.schema)
        if isinstance(question.schema, dict) and isinstance(answer, dict):
            # Shapes that a script does not need stay empty.
            wanted = question.schema.get("properties", {}).keys() & SHAPES
            answer = {**{name: [] for name in wanted}, **answer}
        errors = list(Draft202012Validator(question.schema).iter_errors(answer))
        if errors:
            raise MindError(f"{question.step}: {errors[0].message[:300]}")
        result: Json = answer
        return result

    @property
    def calls(self) -> Count[str]:
        """The number of questions of each step."""
        return Count(question.step for question in self.asked)


class Rejected(Exception):
    """A side rejected; the text is its reason."""


@dataclass
class Contact:
    """Two sides that agreed, with their halves loaded."""

    document: str
    encode: InProcessHalf
    provide: InProcessHalf
    halves: tuple[HalfSource, HalfSource]
    transcript: tuple[Turn, ...]
    called: list[tuple[str, Any]] = field(default_factory=list)

    async def call(
        self, arguments: dict[str, Any], tools: Mapping[str, Tool], offer: Offer
    ) -> Any:
        """Make one call through both halves, checking what the daemon checks."""
        schemas = {one.name: one for one in offer.capabilities}
        document = read_document(self.document)

        async def on_call(name: str, given: Json) -> Json:
            assert name in self.halves[1].capabilities
            assert findings(schemas[name].input_schema, given) == []
            self.called.append((name, given))
            assert isinstance(given, dict)
            return tools[name](given)

        request = await self.encode.encode_request("m-1", arguments)
        if document.is_json:
            assert findings(document.request_schema, json.loads(request)) == []
        response = await self.provide.handle_request(request, on_call)
        answer = await self.encode.decode_response(response)
        return answer["error"] if "error" in answer else answer["result"]


async def meet(
    requester: Mind, provider: Mind, demand: Demand, offer: Offer, *, first: str = ""
) -> Contact:
    """Let two minds negotiate as the machine would, and check both halves.

    Args:
        first: The first candidate, instead of what the requester proposes.
    """
    turns: list[tuple[bool, str, str]] = []
    candidate = first or await requester.propose(demand)
    turns.append((True, candidate, ""))
    ours: HalfSource | None = None
    theirs: HalfSource | None = None
    for number in range(1, 11):
        provides = number % 2 == 1
        mind = provider if provides else requester
        side: Side = offer if provides else demand
        transcript = _transcript(turns, requester=not provides)
        verdict = await mind.judge(candidate, side, transcript)
        if isinstance(verdict, Accept):
            try:
                half = await prepared(mind, candidate, side)
            except HalfError as exc:
                verdict = await mind.judge(
                    candidate, side, transcript, findings=(exc.reason,)
                )
                if isinstance(verdict, Accept):
                    raise Rejected(exc.reason) from exc
            else:
                ours, theirs = (None, half) if provides else (half, None)
        if isinstance(verdict, Reject):
            raise Rejected(verdict.reason)
        if isinstance(verdict, Accept):
            break
        assert isinstance(verdict, Counter)
        candidate = verdict.document
        turns.append((not provides, candidate, verdict.summary))
    else:
        raise Rejected("ten rounds")
    ours = ours or await prepared(requester, candidate, demand)
    theirs = theirs or await prepared(provider, candidate, offer)
    return Contact(
        candidate,
        InProcessHalf(ours.text),
        InProcessHalf(theirs.text),
        (ours, theirs),
        _transcript(turns, requester=True),
    )


async def prepared(mind: Mind, document: str, side: Side) -> HalfSource:
    """Let a mind write its half until it passes acceptance."""

    async def check(half: HalfSource, text: str) -> Findings:
        return await check_half(
            half,
            read_document(text),
            side,
            runner=InProcessHalf(half.text),
            validator=JsonschemaValidator(),
        )

    return await prepare_half(document, side, mind=mind, check=check)


def _transcript(
    turns: Sequence[tuple[bool, str, str]], *, requester: bool
) -> tuple[Turn, ...]:
    return tuple(
        Turn(
            Direction.SENT if by_requester == requester else Direction.RECEIVED,
            number,
            Status.NEGOTIATING,
            candidate,
            summary,
            0.0,
        )
        for number, (by_requester, candidate, summary) in enumerate(turns)
    )


def link(to: str, how: str = "copy", *args: str, of: Sequence[str] = ()) -> Any:
    """Return a link of an answer."""
    return {"to": to, "how": how, "from": list(of), "args": list(args)}


def call(capability: str, *arguments: Any) -> Any:
    """Return a call of an answer."""
    return {"capability": capability, "arguments": list(arguments)}


def offer_answer(*calls: Any, result: Sequence[Any] = (), **more: Any) -> Any:
    """Return an answer to `offer`; without calls nothing serves."""
    answer = {
        "serves": bool(calls),
        "missing": "",
        "calls": list(calls),
        "result": list(result),
    }
    return {**answer, **more}


def reply_answer(
    request: Sequence[Any] = (), result: Sequence[Any] = (), **more: Any
) -> Any:
    """Return an answer to `reply`."""
    answer = {
        "usable": True,
        "missing": "",
        "request": list(request),
        "result": list(result),
    }
    return {**answer, **more}


def proposal(**more: Any) -> Any:
    """Return an answer to `propose`."""
    answer: dict[str, Any] = {"response": [], "errors": []}
    if "format" in more:
        # Asked only if the task may want messages that are not JSON.
        answer |= {"encoding": "", "codec": "", "examples": []}
    return {**answer, **more}


def failing(code: str, message: str) -> Tool:
    """Return a tool that fails."""

    def tool(arguments: dict[str, Any]) -> Json:
        raise CapabilityFailed(code, message)

    return tool
