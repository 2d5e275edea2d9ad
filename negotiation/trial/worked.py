"""Trials of halves whose bytes are not JSON, by the worked examples.

These checks need no model (DESIGN.md, Negotiation; ANP-70):

* `read_message` returns the values of every example, and accepts neither a truncated
  example nor junk as a good message. All other checks then use it.
* A requester half: the messages that it encodes from the need's data and samples fit
  the request schema when read; a worked request whose arguments are known
  (`request_told`) is produced byte by byte; a worked response gives a result that fits
  the need, and a worked error gives an error.
* A provider half: its answers to worked requests, with samples of the capabilities'
  outputs and with failures, fit the response schemas when read; a worked response whose
  capability output is known, and a worked error, are produced byte by byte if the
  values are those of the example.

Samples of requests cannot be made without the requester's half, nor samples of
responses without the provider's. So such a check is `full` only where the examples
determine all.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from negotiation.document.examples import NAMES
from negotiation.document.fields import (
    MessageFields,
    Place,
    Slot,
    places_of,
    take_message_id,
)
from negotiation.document.layout import Layout
from negotiation.document.message_judge import find
from negotiation.document.shape import Document, ExampleKind, MessageKind, WorkedExample
from negotiation.errors import (
    CapabilityFailed,
    DocumentError,
    HalfError,
    JsonError,
    SchemaError,
)
from negotiation.need import Schema, infer_schema
from negotiation.schema.intake import prepared
from negotiation.schema.keywords import keywords_of
from negotiation.schema.values import same_json
from negotiation.strict_json import Json
from negotiation.trial.provider import ProviderTrial, SampleRequest
from negotiation.trial.requester import RequesterTrial
from negotiation.trial.trial import HOSTILE, Trial

BEYOND: Final = "the format cannot hold the values"
"Begins the error of a half for values that have no room in the format."


@dataclass(frozen=True, slots=True)
class Told:
    """The input of a requester half that gives an example's request."""

    message_id: str
    "The message id; empty when the document has none."

    arguments: dict[str, Any]


def request_told(
    document: Document, values: dict[str, Json], names: Collection[str]
) -> Told | None:
    """Return the input that gives a request with `values`, or None if unknown.

    Args:
        names: Names of the need's data; the example must use no others.
    """
    try:
        request = MessageFields("request", document.request_schema)
        message_id = take_message_id(
            request, MessageFields("response", document.response_schema)
        )
        # The half may choose the text of a free action.
        request.take_action()
        if request.action_schema is not None:
            return None
        own = document.input_schema is not None
        request.take_constants("REQUEST", keep="input" if own else None)
        places = places_of(request, "input" if own else None)
    except DocumentError:
        return None
    given = values.get(message_id) if message_id is not None else ""
    if not isinstance(given, str):
        return None
    for place in places:
        arguments = value_at(values, place, request.taken)
        if arguments is not None and arguments.keys() <= set(names):
            return Told(given, arguments)
    return None


def value_at(
    values: dict[str, Json], place: Place, taken: Collection[str]
) -> dict[str, Json] | None:
    """Return the object at `place`, or None if there is none.

    Args:
        taken: Names that are not values, for a place among other fields.
    """
    if not place.path:
        return {name: one for name, one in values.items() if name not in taken}
    found = find(values, place.path)
    return found if isinstance(found, dict) else None


def pairs_of(
    document: Document, layout: Layout | None, kind: ExampleKind
) -> list[tuple[WorkedExample, WorkedExample]]:
    """Return each worked request with the answer of `kind` that belongs to it.

    They belong together when they have the same message id; in a document without ids,
    when there is only one of each.
    """
    requests = document.examples_of(ExampleKind.REQUEST)
    answers = document.examples_of(kind)
    name = layout.message_id if layout is not None else None
    if name is None:
        alone = len(requests) == len(answers) == 1
        return [(requests[0], answers[0])] if alone else []
    return [
        (request, answer)
        for request in requests
        for answer in answers
        if request.values.get(name) == answer.values.get(name)
    ]


def failure_of(layout: Layout, values: dict[str, Json]) -> CapabilityFailed:
    """Return the most likely capability failure behind an error response."""
    response = layout.response
    codes = [
        find(values, path)
        for path, leaf in response.bad
        if leaf in {Slot.CODE, Slot.CODE_TEXT}
    ]
    texts = [find(values, path) for path in response.texts]
    code = next((one for one in codes if isinstance(one, int | str)), 500)
    text = next((one for one in texts if isinstance(one, str)), "it broke")
    return CapabilityFailed(str(code), text)


NEVER_GOOD: Final = (HOSTILE[0], *HOSTILE[-2:])
"""Bytes that are no message in any format: none at all, and far too many brackets.

Other bytes of `HOSTILE` may be a message in some format.
"""


def example_schema(document: Document, kind: ExampleKind, error: Schema) -> Schema:
    """Return the schema that the values of an example must fit.

    Args:
        error: Schema of an error response.
    """
    if kind is ExampleKind.REQUEST:
        return document.request_schema
    return document.response_schema if kind is ExampleKind.RESPONSE else error


class _Reading(Trial):
    """The trial of `read_message`, which both halves have."""

    async def _read_examples(self) -> None:
        for example in self._document.examples:
            name = NAMES[example.kind]
            read = await self._read(example.kind.message, example.data)
            if isinstance(read, HalfError):
                self.problem(f"read_message fails for the worked {name}: {read}")
                continue
            if not same_json(read, example.values):
                self.problem(f"read_message gives other values than the worked {name}")
            cut = example.data[: len(example.data) // 2]
            again = await self._read(example.kind.message, cut)
            if not isinstance(again, HalfError) and same_json(again, read):
                self.problem(f"read_message reads the worked {name} although it is cut")

    async def _read_hostile(self) -> None:
        for kind in MessageKind:
            good: list[Json] = []
            for name, data in HOSTILE:
                if await self._unfit(kind, data):
                    continue
                if (name, data) in NEVER_GOOD:
                    self.problem(f"read_message takes {name} for a good {kind}")
                values = await self._read(kind, data)
                if any(same_json(values, one) for one in good if one is not None):
                    self.problem(f"read_message reads different bytes as one {kind}")
                good.append(None if isinstance(values, HalfError) else values)

    async def _read(self, kind: MessageKind, data: bytes) -> Any:
        """Return the result of `read_message`, or the HalfError that it raises."""
        self._checks += 1
        try:
            return await self._judge.values(kind, data)
        except JsonError as exc:
            return HalfError("error", str(exc))
        except HalfError as exc:
            return exc

    async def _same_bytes(self, made: bytes, example: WorkedExample, what: str) -> bool:
        """Return whether `made` has the values of `example`, and then its bytes."""
        if made == example.data:
            return True
        values = await self._values(example.kind.message, made)
        if not same_json(values, example.values):
            return False
        self.problem(
            f"{what} gives other bytes than the worked {NAMES[example.kind]} although "
            "the values are the same"
        )
        return True


class WorkedRequesterTrial(_Reading, RequesterTrial):
    """Checks encoding and reading, the worked requests, and decoding of answers."""

    async def run(self) -> None:
        """Run all checks; the answers are the worked ones."""
        await self._read_examples()
        await self._read_hostile()
        await super().run()
        if not self.problems:
            await self._produce()

    async def _produce(self) -> None:
        need = self._side.need
        schema = need.input_schema
        try:
            given = prepared(
                infer_schema(self._side.arguments) if schema is None else schema
            )
        except SchemaError as exc:
            self.problem(f"the task's schema cannot be used: {exc}")
            return
        named = keywords_of(given).get("properties", {})
        for example in self._document.examples_of(ExampleKind.REQUEST):
            told = request_told(self._document, example.values, named)
            if told is None or await self._validator.validate(given, told.arguments):
                self._partial = True
                continue
            self._checks += 1
            try:
                made = await self._runner.encode_request(
                    told.message_id, told.arguments
                )
            except HalfError as exc:
                self.problem(f"encode_request fails for the worked request: {exc}")
                continue
            if not await self._same_bytes(made, example, "encode_request"):
                self.problem(
                    "encode_request gives other values than the worked request"
                )

    def _may_refuse(self, arguments: Json, exc: HalfError) -> bool:
        # A need's schema seldom tells what has room in a layout. The call's own data
        # has to have room.
        beyond = BEYOND in str(exc) and arguments != self._side.arguments
        self._partial = self._partial or beyond
        return beyond

    async def _decode_good(self, wanted: Schema) -> None:
        examples = self._document.examples_of(ExampleKind.RESPONSE)
        results = [
            await self._decode(example.data, wanted, self._id_of(example))
            for example in examples
        ]
        # Two answers may differ in parts that the need does not ask for.
        sources: list[Json] = [self._result_of(example) for example in examples]
        self._constant(sources, results, target=wanted, what="decode_response")

    async def _decode_bad(self) -> None:
        for example in self._document.examples_of(ExampleKind.ERROR):
            await self._decode_error(example.data)

    def _id_of(self, example: WorkedExample) -> Json:
        name = self._layout.message_id if self._layout is not None else None
        return None if name is None else example.values.get(name)

    def _result_of(self, example: WorkedExample) -> Json:
        if self._layout is None:
            return example.values
        response = self._layout.response
        return value_at(example.values, response.places[0], response.taken)


class WorkedProviderTrial(_Reading, ProviderTrial):
    """Passes the worked requests to the half, and checks the worked answers."""

    async def run(self) -> None:
        """Run all checks; the requests are the worked ones."""
        await self._read_examples()
        await self._read_hostile()
        await super().run()
        if not self.problems:
            await self._produce_good()
            await self._produce_bad()

    async def _requests(self) -> list[SampleRequest]:
        name = self._layout.message_id if self._layout is not None else None
        return [
            SampleRequest(
                example.data, None if name is None else example.values.get(name)
            )
            for example in self._document.examples_of(ExampleKind.REQUEST)
        ]

    async def _produce_good(self) -> None:
        pairs = pairs_of(self._document, self._layout, ExampleKind.RESPONSE)
        if len(self._half.capabilities) != 1 or not pairs or self._layout is None:
            self._partial = True
            return
        [called] = self._half.capabilities
        schema = prepared(
            next(
                one for one in self._side.capabilities if one.name == called
            ).output_schema
        )
        named = keywords_of(schema).get("properties", {})
        response = self._layout.response
        for request, example in pairs:
            place = response.places[0]
            output = value_at(example.values, place, response.taken)
            if (
                output is None
                or not output.keys() <= set(named)
                or await self._validator.validate(schema, output)
            ):
                self._partial = True
                continue
            made = await self._answered(request, output)
            if made is None or await self._same_bytes(made, example, "handle_request"):
                continue
            values = await self._values(MessageKind.RESPONSE, made)
            # Other words, such as a status text, are the half's own choice.
            if not same_json(value_at(values, place, response.taken), output):
                self.problem("handle_request gives another result than the worked one")

    async def _produce_bad(self) -> None:
        if self._layout is None:
            return
        for request, example in pairs_of(
            self._document, self._layout, ExampleKind.ERROR
        ):
            failure = failure_of(self._layout, example.values)
            made = await self._answered(request, failure)
            if made is not None:
                await self._same_bytes(made, example, "handle_request (error)")

    async def _answered(
        self, request: WorkedExample, answer: Json | CapabilityFailed
    ) -> bytes | None:
        """Return the answer to a worked request, or None when the half fails."""
        self._checks += 1

        async def on_call(name: str, arguments: Json) -> Json:
            if isinstance(answer, CapabilityFailed):
                raise answer
            return answer

        try:
            return await self._runner.handle_request(request.data, on_call)
        except HalfError as exc:
            self.problem(f"handle_request fails for the worked request: {exc}")
            return None
