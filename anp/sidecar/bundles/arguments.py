"""Data to try the requester half of a bundle with, when no call is at hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from anp.sidecar.agreement.offline import ASKED, kept_fixtures
from negotiation.document import Document
from negotiation.document.layout import read_layout
from negotiation.errors import DocumentError, SchemaError
from negotiation.need import Schema, Task
from negotiation.schema.intake import prepared
from negotiation.schema.samples import make_samples
from negotiation.strict_json import Json
from negotiation.trial.acceptance import Validator

__all__ = ["likely_arguments"]


async def likely_arguments(
    document: Document, task: Task, tests: Mapping[str, Any], validator: Validator
) -> dict[str, Any]:
    """Return data to try a requester half with, when no call is at hand.

    That is the data of an earlier test case, else what the task's schema allows, else
    what the document's request takes where the rules see it; else an empty object.

    Args:
        tests: The `tests` of an agreement, from anywhere.
    """
    schema = _argument_schema(document, task)
    made = [sample.value for sample in make_samples(schema).values]
    for value in (*_earlier(tests), *made):
        if isinstance(value, dict) and not await validator.validate(schema, value):
            return value
    return {}


def _argument_schema(document: Document, task: Task) -> Schema:
    try:
        if task.input_schema is not None:
            return prepared(task.input_schema)
        return read_layout(document.of_values).request.places[0].schema
    except (DocumentError, SchemaError):
        return True


def _earlier(tests: Mapping[str, Any]) -> Iterator[Json]:
    for fixtures in kept_fixtures(tests, ASKED).values():
        for fixture in fixtures:
            yield fixture["arguments"]
