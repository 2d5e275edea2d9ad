"""The trial of a requester half."""

from __future__ import annotations

from collections.abc import Sequence

from negotiation.document.fields import Slot, build_message
from negotiation.document.shape import MessageKind
from negotiation.errors import HalfError, JsonError, SchemaError
from negotiation.mind import Demand
from negotiation.need import Schema, infer_schema
from negotiation.schema.intake import prepared
from negotiation.schema.keywords import cut
from negotiation.schema.narrow import narrowed
from negotiation.strict_json import Json, canonical_json
from negotiation.trial.trial import (
    HOSTILE,
    MESSAGE_ID,
    Trial,
    dumped,
    fullest,
    lacks,
    slots,
)


class RequesterTrial(Trial):
    """Encodes data that the need may send, and decodes answers of a provider."""

    _side: Demand

    async def run(self) -> None:
        """Run all checks, with the data at hand and the samples of the need."""
        demand, need = self._side, self._side.need
        try:
            given = need.input_schema
            schema = prepared(
                infer_schema(demand.arguments) if given is None else given
            )
            wanted = prepared(
                True if need.output_schema is None else need.output_schema
            )
        except SchemaError as exc:
            self.problem(f"the task's schema cannot be used: {exc}")
            return
        # Without a schema of the caller only the data at hand is known to be valid.
        if given is None:
            arguments: list[Json] = [demand.arguments]
        else:
            arguments = await self._valid(schema, [demand.arguments], "arguments")
        encoded = [await self._encode(value) for value in arguments]
        target = self._layout.request.places[0].schema if self._layout else True
        self._constant(arguments, encoded, target=target, what="encode_request")
        await self._vary_arguments(schema, arguments)
        await self._decode_updates()
        await self._decode_good(wanted)
        await self._vary_response(wanted)
        await self._decode_bad()
        for name, data in (
            *HOSTILE,
            *self._wrong_types(self._document.response_schema),
        ):
            await self._decode_hostile(name, data)

    async def _encode(self, arguments: Json) -> bytes | None:
        self._checks += 1
        self._tried += 1
        if not isinstance(arguments, dict):
            self.problem("the arguments of the task are no object")
            return None
        try:
            data = await self._runner.encode_request(MESSAGE_ID, arguments)
        except HalfError as exc:
            if not self._may_refuse(arguments, exc):
                self.problem(f"encode_request fails for {cut(arguments)}: {exc}")
            return None
        kind, schema = MessageKind.REQUEST, self._document.request_schema
        if not await self._fits(kind, schema, data, "encode_request"):
            return None
        self._carries_id(await self._values(kind, data), "encode_request")
        return data

    def _may_refuse(self, arguments: Json, exc: HalfError) -> bool:
        """Return whether the half is right not to encode a sample."""
        return False

    async def _vary_arguments(self, schema: Schema, arguments: Sequence[Json]) -> None:
        """Check that each argument has its effect on the request."""
        base = fullest(arguments)
        if base is not None and not self.problems:
            to = self._layout.request.places[0].schema if self._layout else True
            source = schema, base
            await self._cross("encode_request", source, to, self._encoded, every=True)

    async def _encoded(self, arguments: Json) -> Json:
        """Return the values of the request for `arguments`; None if refused."""
        if not isinstance(arguments, dict):
            return None
        try:
            data = await self._runner.encode_request(MESSAGE_ID, arguments)
        except HalfError:
            return None
        values = await self._values(MessageKind.REQUEST, data)
        part = None if self._layout is None else self._layout.request
        return self._inside(values, part.places[0], part.taken) if part else values

    async def _vary_response(self, wanted: Schema) -> None:
        """Check that each field of the response goes where it belongs."""
        layout = self._layout
        if layout is None or not self._document.is_json or self.problems:
            return
        place = layout.response.places[0]
        given = narrowed(place.schema, wanted)
        base = fullest(await self._valid(given, (), "response"))
        if base is not None:
            await self._cross("decode_response", (given, base), wanted, self._result)

    async def _result(self, value: Json) -> Json:
        """Return the result of a good response with `value`; None if there is none."""
        assert self._layout is not None
        response = self._layout.response
        message = build_message(
            response.good, slots(), place=response.places[0], value=value
        )
        try:
            answer = await self._runner.decode_response(dumped(message))
        except HalfError:
            return None
        found: Json = answer.get("result")
        return found

    async def _decode_updates(self) -> None:
        """Check that the half tells an update from a response."""
        schema = self._document.update_schema
        if schema is None:
            return
        layout = None if self._layout is None else self._layout.update
        if layout is None:
            messages = await self._valid(schema, (), "update")
        else:
            values = await self._valid(layout.place.schema, (), "update")
            messages = [
                build_message(layout.fields, slots(), place=layout.place, value=one)
                for one in values
            ]
        for message in messages if self._document.is_json else ():
            self._checks += 1
            try:
                answer = await self._runner.decode_response(dumped(message))
            except HalfError as exc:
                self.problem(f"decode_response fails for an update: {exc}")
                return
            if "update" not in answer or answer.keys() & {"result", "error"}:
                self.problem(
                    'decode_response does not return {"message_id", "update"} for an '
                    f"update, which comes before the response: {cut(message)}"
                )
                return
            has_id = self._layout is not None and self._layout.message_id is not None
            if has_id and answer.get("message_id") != MESSAGE_ID:
                self.problem("decode_response does not give back an update's id")

    async def _decode_good(self, wanted: Schema) -> None:
        layout = self._layout
        if layout is None:
            return
        place = layout.response.places[0]
        # Less than this is answered with an error that names what is absent.
        given = narrowed(place.schema, wanted)
        values = await self._valid(given, (), "response")
        results: list[bytes | None] = []
        for value in values:
            message = build_message(
                layout.response.good, slots(), place=place, value=value
            )
            schema = self._document.response_schema
            if await self._validator.validate(schema, message):
                # The response as a whole has further conditions, so this shows nothing.
                self._partial = True
                results.append(None)
                continue
            results.append(
                await self._decode(dumped(message), wanted, absent=lacks(value, values))
            )
        self._constant(values, results, target=wanted, what="decode_response")

    async def _decode(
        self,
        data: bytes,
        wanted: Schema,
        message_id: Json = MESSAGE_ID,
        *,
        absent: bool = False,
    ) -> bytes | None:
        """Decode a good response, and check the result.

        Args:
            absent: True if it lacks something, which an error may name.
        """
        self._checks += 1
        self._tried += 1
        try:
            answer = await self._runner.decode_response(data)
        except HalfError as exc:
            self.problem(f"decode_response fails for a good response: {exc}")
            return None
        if absent and "error" in answer and "result" not in answer:
            return None
        if "error" in answer or "result" not in answer:
            self.problem("decode_response gives no result for a good response")
            return None
        has_id = self._layout is not None and self._layout.message_id is not None
        if has_id and answer.get("message_id") != message_id:
            self.problem("decode_response does not give back the message id")
        for finding in await self._validator.validate(wanted, answer["result"]):
            self.problem(f"the result does not fit the task: {finding}")
        try:
            return canonical_json(answer["result"])
        except JsonError as exc:
            self.problem(f"decode_response gives a result that is no JSON: {exc}")
            return None

    async def _decode_bad(self) -> None:
        if self._layout is None:
            return
        message = build_message(self._layout.response.bad, slots())
        await self._decode_error(dumped(message))

    async def _decode_error(self, data: bytes) -> None:
        self._checks += 1
        try:
            answer = await self._runner.decode_response(data)
        except HalfError as exc:
            self.problem(f"decode_response fails for an error response: {exc}")
            return
        error = answer.get("error")
        if not isinstance(error, dict) or "result" in answer:
            self.problem("decode_response takes an error response for a good one")
        elif not {"code", "message"} <= error.keys():
            self.problem("decode_response gives an error without code and message")
        elif self._sends_code() and str(error["code"]) != str(slots()[Slot.CODE]):
            self.problem(
                f"decode_response gives the code {cut(error['code'])} for an error "
                f"with {slots()[Slot.CODE]}"
            )

    def _sends_code(self) -> bool:
        """Return whether an error of the samples has one code, a number."""
        if self._layout is None or not self._document.is_json:
            return False
        leaves_ = [leaf for _, leaf in self._layout.response.bad]
        return leaves_.count(Slot.CODE) == 1 and Slot.CODE_TEXT not in leaves_

    async def _decode_hostile(self, name: str, data: bytes) -> None:
        self._checks += 1
        try:
            answer = await self._runner.decode_response(data)
        except HalfError:
            return
        if "error" not in answer and await self._unfit(MessageKind.RESPONSE, data):
            self.problem(f"decode_response takes {name} for a good response")
