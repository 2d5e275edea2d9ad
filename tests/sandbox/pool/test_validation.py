"""Schemas and values judged in workers: findings in words, and always an end."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

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
        "id: 5 is not of type 'string'",
        "n: 0 is less than the minimum of 1",
    ]
    [finding] = await validator.check_schema({"type": "strnig"})
    assert finding.startswith("type: ")


async def test_at_most_ten_findings_of_300_characters(
    validator: SchemaValidator,
) -> None:
    schema: dict[str, Any] = {"items": {"type": "string", "const": "x" * 400}}
    found = await validator.validate(schema, list(range(10)))
    assert len(found) == 10
    assert max(map(len, found)) == 300
    schema = {"items": {"type": "string"}}
    assert len(await validator.validate(schema, list(range(9)))) == 9
    assert len(await validator.validate(schema, list(range(11)))) == 10


async def test_a_catastrophic_pattern_takes_no_time_at_all(
    validator: SchemaValidator,
) -> None:
    async with asyncio.timeout(0.9):
        [found] = await validator.validate(CATASTROPHE, "a" * 50_000 + "!")
    assert "does not match" in found
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
    [finding] = await validator.validate(True, 1)
    assert "closed" in finding
