"""Runs halves that we wrote ourselves inside the test, and judges with jsonschema."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import lru_cache
from types import CodeType
from typing import Any

from jsonschema import Draft202012Validator
from RestrictedPython.compile import compile_restricted_exec

from negotiation.errors import CapabilityFailed, HalfError
from negotiation.mind import OnStream
from negotiation.need import Schema
from negotiation.strict_json import Json


class CapabilityError(Exception):
    """The error that a half sees when a capability failed."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class ValueAbsent(CapabilityError):
    """The error of a half for a value that nobody gave."""

    def __init__(self, message: str) -> None:
        super().__init__("502", message)


@lru_cache(maxsize=64)
def _compiled(source: str) -> CodeType:
    """Compile a half that RestrictedPython has nothing against."""
    compiled = compile_restricted_exec(source)
    assert compiled.errors == (), compiled.errors
    return compile(source, "<half>", "exec")


class InProcessHalf:
    """A half, compiled by RestrictedPython's rules and run without them."""

    def __init__(self, source: str) -> None:
        self.space: dict[str, Any] = {
            "call": lambda name, arguments, write=None: (name, arguments, write),
            "CapabilityError": CapabilityError,
            "ValueAbsent": ValueAbsent,
        }
        exec(_compiled(source), self.space)

    async def encode_request(self, message_id: str, arguments: dict[str, Any]) -> bytes:
        data: bytes = self._call("encode_request", message_id, arguments)
        return data

    async def decode_response(self, data: bytes) -> dict[str, Any]:
        answer: dict[str, Any] = self._call("decode_response", data)
        return answer

    async def read_message(self, kind: str, data: bytes) -> dict[str, Any]:
        values: dict[str, Any] = self._call("read_message", kind, data)
        return values

    async def handle_request(
        self,
        data: bytes,
        on_call: Callable[[str, Json], Awaitable[Json]],
        on_stream: OnStream | None = None,
    ) -> bytes:
        generator = self.space["handle_request"](data)
        answer: Any = None
        failure: CapabilityError | None = None
        while True:
            try:
                if failure is None:
                    name, arguments, write = generator.send(answer)
                else:
                    name, arguments, write = generator.throw(failure)
            except StopIteration as end:
                result: bytes = end.value
                return result
            except (Exception, RecursionError) as exc:
                raise HalfError("error", f"{type(exc).__name__}: {exc}") from exc
            failure = None
            try:
                if write is not None and on_stream is not None:
                    answer = await on_stream(name, arguments, self._writer(write))
                else:
                    answer = await on_call(name, arguments)
            except CapabilityFailed as exc:
                failure = CapabilityError(exc.code, exc.message)

    def _writer(self, write: Any) -> Callable[[Json], Awaitable[bytes]]:
        async def written(value: Json) -> bytes:
            try:
                data: bytes = write(value)
            except (Exception, RecursionError) as exc:
                raise HalfError("error", f"{type(exc).__name__}: {exc}") from exc
            return data

        return written

    def _call(self, name: str, *args: Any) -> Any:
        try:
            return self.space[name](*args)
        except (Exception, RecursionError) as exc:
            raise HalfError("error", f"{type(exc).__name__}: {exc}") from exc


class JsonschemaValidator:
    """The validator of acceptance, for schemas that a test wrote."""

    async def check_schema(self, schema: Schema) -> list[str]:
        metaschema = Draft202012Validator(Draft202012Validator.META_SCHEMA)
        return [error.message for error in metaschema.iter_errors(schema)]

    async def validate(self, schema: Schema, value: Json) -> list[str]:
        return findings(schema, value)

    def fits(self, schema: Schema, data: bytes, value: Json) -> bool:
        return False

    async def validate_json(
        self, schema: Schema, data: bytes, values: Json = None
    ) -> list[str]:
        try:
            value = json.loads(data.decode("utf-8"))
        except (ValueError, RecursionError) as exc:
            return [str(exc)]
        return findings(schema, value)


def findings(schema: Schema, value: Json) -> list[str]:
    """Return what jsonschema says against `value`."""
    return [error.message for error in Draft202012Validator(schema).iter_errors(value)]
