"""Schemas and values judged in workers: findings in words, and always an end."""

from __future__ import annotations

import asyncio
import re
import socket
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from sandbox.pool.shares import Rank, Share, current_share
from sandbox.pool.validation import OUT_OF_TIME, SchemaValidator

PRODUCT: dict[str, Any] = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "n": {"$ref": "#/$defs/count"}},
    "required": ["id"],
    "$defs": {"count": {"type": "integer", "minimum": 1}},
}

CATASTROPHE: dict[str, Any] = {"type": "string", "pattern": "^(a+)+$"}

SLOW: dict[str, Any] = {"uniqueItems": True}
LONG = [{"n": number} for number in range(20_000)]
"Takes the library minutes, since it compares objects each with each."


async def test_a_value_that_fits_has_no_finding(validator: SchemaValidator) -> None:
    assert await validator.check_schema(PRODUCT) == []
    assert await validator.validate(PRODUCT, {"id": "a", "n": 1}) == []
    assert await validator.validate_json(PRODUCT, b'{"id": "a", "n": 1}') == []


async def test_findings_name_path_and_problem(validator: SchemaValidator) -> None:
    assert await validator.validate(PRODUCT, {"id": 5, "n": 0}) == [
        "id has to be a string, not 5",
        "n has to be at least 1, and is 0",
    ]
    [finding] = await validator.check_schema({"type": "strnig"})
    assert finding.startswith("type fits none of the forms")
    assert "strnig" in finding


async def test_at_most_ten_findings_of_300_characters(
    validator: SchemaValidator,
) -> None:
    schema: dict[str, Any] = {"additionalProperties": {"type": "string"}}
    [found] = await validator.validate(schema, {"x" * 400: 1})
    assert len(found) == 300
    schema = {"items": {"type": "string"}}
    assert len(await validator.validate(schema, list(range(9)))) == 9
    assert len(await validator.validate(schema, list(range(11)))) == 10


async def test_a_catastrophic_pattern_takes_no_time_at_all(
    validator: SchemaValidator,
) -> None:
    async with asyncio.timeout(0.9):
        [found] = await validator.validate(CATASTROPHE, "a" * 50_000 + "!")
    assert found.startswith("the value has to match the pattern")
    assert await validator.validate(CATASTROPHE, "aa") == []


async def test_a_slow_check_runs_out_of_time_and_the_next_check_works(
    validator: SchemaValidator,
) -> None:
    assert await validator.validate(SLOW, LONG) == [OUT_OF_TIME]
    assert await validator.validate(SLOW, LONG[:9]) == []


async def test_one_slow_check_does_not_stop_the_others(
    validator: SchemaValidator,
) -> None:
    slow = asyncio.create_task(validator.validate(SLOW, LONG))
    await asyncio.sleep(0)
    checks = [validator.validate({"const": n}, n) for n in range(20)]
    assert await asyncio.gather(*checks) == [[]] * 20
    assert not slow.done()
    assert await slow == [OUT_OF_TIME]


async def test_a_remote_reference_is_a_finding_and_nobody_is_asked(
    validator: SchemaValidator,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        address = f"http://127.0.0.1:{server.getsockname()[1]}/schema"
        [finding] = await validator.validate({"$ref": address}, 1)
        assert "refers to something" in finding
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        {"$ref": "#/$defs/none"},
        {"$ref": "file:///etc/passwd"},
        {"type": 5},
        {"pattern": "("},
    ],
)
async def test_a_schema_that_cannot_be_used_is_a_finding(
    validator: SchemaValidator, schema: dict[str, Any]
) -> None:
    [finding] = await validator.validate(schema, "x")
    assert finding
    assert await validator.validate(True, "x") == []


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"NaN",
        b"-Infinity",
        b"1e999",
        b'{"a": 1, "a": 2}',
        b'"\xff"',
        b"\xef\xbb\xbf1",
        b"1 2",
        b"[" * 100_000,
        b"1" * 5_000,
    ],
)
async def test_what_is_not_strict_json_is_one_finding(
    validator: SchemaValidator, data: bytes
) -> None:
    [finding] = await validator.validate_json(True, data)
    assert finding.startswith("not JSON: ")


async def test_after_close_a_check_is_a_finding(validator: SchemaValidator) -> None:
    await validator.close()
    [finding] = await validator.validate({"pattern": "b"}, "a")
    assert "closed" in finding


STRANGER = Share(Rank.COMMON, "192.0.2.1")
NEWCOMER = Share(Rank.COMMON, "192.0.2.2")
LISTED = Share(Rank.LISTED, "did:key:zFriend")


async def checked(
    validator: SchemaValidator, share: Share, schema: Any, value: Any
) -> tuple[list[str], float]:
    """Check a value for a share; return the findings and the seconds."""

    async def check() -> tuple[list[str], float]:
        current_share.set(share)
        began = time.monotonic()
        return await validator.validate(schema, value), time.monotonic() - began

    return await asyncio.create_task(check())


async def test_a_flood_of_slow_checks_delays_listed_peers_hardly_and_others_little(
    validator: SchemaValidator,
) -> None:
    flood = [
        asyncio.create_task(checked(validator, STRANGER, SLOW, LONG)) for _ in range(30)
    ]
    await asyncio.sleep(0.3)
    waits: dict[Share, list[float]] = {LISTED: [], NEWCOMER: []}
    for _ in range(10):
        for share, seen in waits.items():
            found, seconds = await checked(validator, share, PRODUCT, {"id": "a"})
            assert found == []
            seen.append(seconds)
    # Half of the checks would be enough; a busy machine may stop any of them.
    assert sorted(waits[LISTED])[5] < 0.1
    assert sorted(waits[NEWCOMER])[5] < 0.5
    assert not all(task.done() for task in flood)
    for task in flood:
        task.cancel()
    await asyncio.gather(*flood, return_exceptions=True)


async def test_who_used_up_its_time_for_long_checks_is_told_so_and_others_are_not(
    validator: SchemaValidator,
) -> None:
    found = [(await checked(validator, STRANGER, SLOW, LONG))[0][0] for _ in range(8)]
    assert found[0] == OUT_OF_TIME
    assert "this peer gets no longer one for" in found[-1]
    assert (await checked(validator, NEWCOMER, SLOW, LONG))[0] == [OUT_OF_TIME]
    assert (await checked(validator, STRANGER, PRODUCT, {"id": "a"}))[0] == []


async def test_more_checks_than_may_wait_end_at_once(
    validator: SchemaValidator,
) -> None:
    flood = [
        asyncio.create_task(checked(validator, STRANGER, SLOW, LONG)) for _ in range(80)
    ]
    await asyncio.sleep(0.05)
    ended = [task.result()[0] for task in flood if task.done()]
    assert ["the check was not made: too many checks for this peer wait"] in ended
    for task in flood:
        task.cancel()
    await asyncio.gather(*flood, return_exceptions=True)
    assert (await checked(validator, STRANGER, PRODUCT, {"id": "a"}))[0] == []


async def test_a_pattern_that_is_not_run_is_named_with_its_place(
    validator: SchemaValidator,
) -> None:
    schema = {"properties": {"a": {"pattern": "^(?!x)"}}}
    named = "the negative lookahead (?! is not supported"
    assert await validator.check_schema(schema) == [f"/properties/a/pattern: {named}"]
    [found] = await validator.validate(schema, {"a": "b"})
    assert found == f"the schema cannot be used: {named}"


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"pattern": r"^\p{L}\d$"}, "é1", "é\u0663"),
        ({"patternProperties": {r"^\p{L}$": {"type": "string"}}}, {"é": ""}, {"é": 1}),
        (
            {"patternProperties": {"^x$": {}}, "additionalProperties": False},
            {"x": 1},
            {"x\n": 1},
        ),
        (
            {"patternProperties": {"^(x)$": {}}, "unevaluatedProperties": False},
            {"x": 1},
            {"y": 1},
        ),
        ({"propertyNames": {"pattern": "^[a-z]$"}}, {"a": 1}, {"A": 1}),
        (
            {
                "$schema": "https://json-schema.org/draft/2019-09/schema",
                "patternProperties": {r"^\p{L}$": {}},
                "unevaluatedProperties": False,
            },
            {"é": 1},
            {"1": 1},
        ),
    ],
)
async def test_every_keyword_with_a_pattern_uses_the_linear_engine(
    validator: SchemaValidator, schema: dict[str, Any], good: Any, bad: Any
) -> None:
    assert await validator.check_schema(schema) == []
    assert await validator.validate(schema, good) == []
    assert await validator.validate(schema, bad) != []


def test_the_library_searches_nowhere_else() -> None:
    folder = Path(jsonschema.__file__).parent
    found = [
        path.name
        for path in sorted(folder.glob("*.py"))
        if re.search(r"\bre\.[a-z]+\(", path.read_text())
    ]
    # Formats are checked only where a validator is given a checker for them, and
    # `exceptions` writes the path of a finding.
    replaced = {"_keywords.py", "_legacy_keywords.py", "_utils.py"}
    assert set(found) == {*replaced, "_format.py", "exceptions.py"}


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        ({"required": ["a", "b"]}, {"a": 1}, ["b is required"]),
        ({"required": ["a", "b"]}, {}, ["a is required", "b is required"]),
        (
            {"properties": {"x": {"required": ["y"]}}},
            {"x": {}},
            ["x/y is required"],
        ),
        ({"type": ["string", "null"]}, True, ["a string or null, not true"]),
        ({"enum": ["a", None]}, True, ['has to be one of ["a", null], and is true']),
        (
            {"properties": {"a": {}}, "additionalProperties": False},
            {"a": 1, "c": None},
            ["c is not known"],
        ),
        ({"anyOf": [{"type": "string"}]}, None, ["fits none of the forms"]),
        ({"minLength": 2}, "", ['at least 2 characters, and is ""']),
        (False, None, ["the value is not allowed here"]),
        ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, ["at most 1 characters"]),
    ],
)
async def test_findings_are_sentences_without_values_of_python(
    validator: SchemaValidator, schema: Any, value: Any, words: list[str]
) -> None:
    found = await validator.validate(schema, value)
    assert len(found) == len(words)
    for said, wanted in zip(found, words, strict=True):
        assert wanted in said
        assert not {"None", "True", "'"} & set(said.replace("'", " ' ").split())
