"""Answers of the local API give their JSON and their schema, and the two agree."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, cast, get_args, get_type_hints

import pytest
from starlette.responses import Response

from anp.errors import ErrorKind
from anp.sidecar.api.answers import LEFT_OUT, JsonAnswer
from anp.sidecar.api.app import operations_of
from anp.sidecar.api.openapi import openapi
from anp.sidecar.api.problems import Problem
from anp.sidecar.api.table import LocalScope, Media, Operation, get, operations_in
from anp.sidecar.calls.call import CallResult, CallStep
from cache.records.records import AgreementRole, Hash


class _Nothing:
    """Stands for a daemon that no operation is asked of."""

    def __getattr__(self, name: str) -> Any:
        return self


OPERATIONS = operations_of(cast(Any, _Nothing()))


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample."""

    hash: Hash | None
    role: AgreementRole
    "Our side."

    parts: tuple[Problem, ...] = ()
    note: str | None = LEFT_OUT
    "Perhaps."


class Samples:
    """Operations on samples."""

    tag = "daemon"

    @get("/v1/samples", Sample, scope=LocalScope.AGENT)
    async def get_sample(self, request: object) -> Sample:
        """Give a sample."""
        return Sample(None, AgreementRole.REQUESTER)


def body(answer: object) -> Any:
    return json.loads(bytes(JsonAnswer(answer).body))


def test_an_answer_is_its_fields_all_the_way_down() -> None:
    problem = Problem.of(ErrorKind.USAGE, "no", retry_after=1.5)
    shown = body(Sample(None, AgreementRole.PROVIDER, (problem,), "x"))
    assert (shown["hash"], shown["role"], shown["note"]) == (None, "provider", "x")
    assert shown["parts"][0]["retry_after"] == 1.5
    assert "may_have_run" not in shown["parts"][0]


@pytest.mark.parametrize(
    "output",
    [
        {"x": 'é " \x7f'},
        [1.5, 1e-5, 1e300],
        10**400,
        ("tuple",),
        {1: "one"},
        "x" * 99_999,
    ],
)
def test_a_result_has_the_same_bytes_in_one_piece_and_piece_by_piece(
    output: object,
) -> None:
    result = CallResult(
        output=output,
        protocol=None,
        source="consensus",
        peer_did="did:key:z",
        negotiation_id=None,
        ms=0.1,
        timeline=[CallStep("result", 0.1)],
    )
    text = json.dumps(asdict(result), ensure_ascii=False, separators=(",", ":"))
    assert bytes(JsonAnswer(result).body) == text.encode()


def test_what_is_left_out_has_no_key_and_null_has_one() -> None:
    assert "note" not in body(Sample(None, AgreementRole.PROVIDER))
    assert body(Sample(None, AgreementRole.PROVIDER, (), None))["note"] is None


def test_a_number_that_json_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="Out of range float"):
        JsonAnswer({"number": float("nan")})


def test_the_schema_says_what_is_always_there_and_what_it_means() -> None:
    [operation] = operations_in(Samples())
    assert (operation.name, operation.summary) == ("getSample", "Give a sample.")
    document = openapi([operation], version="1")
    shown = document["components"]["schemas"]["Sample"]
    assert shown["required"] == ["hash", "role", "parts"]
    assert shown["properties"]["role"]["description"] == "Our side."
    assert shown["properties"]["hash"]["anyOf"][0]["pattern"] == "^[0-9a-f]{64}$"
    assert "default" not in shown["properties"]["note"]
    answer = document["paths"]["/v1/samples"]["get"]["responses"]["200"]
    assert answer["description"] == "A sample."


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_an_operation_answers_what_it_declares(operation: Operation) -> None:
    hints = get_type_hints(operation.handler)
    found = {*get_args(hints["return"]), hints["return"]}
    if operation.others or isinstance(operation.answer, Media):
        assert Response in found
    else:
        assert operation.answer in found
    assert hints.get("body") in {operation.body, bytes}
