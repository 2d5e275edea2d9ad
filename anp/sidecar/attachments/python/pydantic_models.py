"""Models of pydantic among the owner's types: their schemas, and JSON in and out.

`runner.py` loads this file by its path when it meets such a model, for nothing of our
installation is on the path of the owner's interpreter. It imports the standard library
only: the models are known by their methods, those of pydantic 2 or of pydantic 1.
"""

from __future__ import annotations

import json
from typing import Any

Schema = dict[str, Any]

MAX_FINDINGS = 5
"Findings about one value that its error names."


def schema_of(model: Any, *, is_result: bool) -> Schema:
    """Return the JSON Schema of a model, without references to other parts of it.

    Args:
        is_result: The function returns the model, with its computed fields.
    """
    if hasattr(model, "model_json_schema"):
        mode = "serialization" if is_result else "validation"
        whole = model.model_json_schema(mode=mode)
    else:
        whole = model.schema()
    found: Schema = _inlined(whole, whole, ())
    return found


def read(model: Any, value: Any, where: str, error: type[ValueError]) -> Any:
    """Return the model that a JSON value stands for.

    Args:
        where: Place of the value, for the words of an error.
        error: Raised with the words when the value does not fit.
    """
    try:
        if hasattr(model, "model_validate_json"):
            # As JSON, so that a strict model takes a date or a number as JSON has it.
            return model.model_validate_json(json.dumps(value))
        return model.parse_obj(value)
    except ValueError as exc:
        # Pydantic's own error has a list of findings, any other has its words.
        errors: list[Any] = getattr(exc, "errors", list)()
        found = [
            f"{'.'.join((where, *map(str, one['loc'])))}: {one['msg']}"
            for one in errors[:MAX_FINDINGS]
        ]
        raise error("; ".join(found) or f"{where}: {exc}") from None


def written(model: Any) -> Any:
    """Return the JSON value of a model.

    Raises:
        ValueError: It has none.
    """
    if hasattr(model, "model_dump"):
        return model.model_dump(mode="json", by_alias=True)
    return json.loads(model.json(by_alias=True))


def _inlined(value: Any, whole: Schema, inside: tuple[str, ...]) -> Any:
    """Return a part of a schema with what it refers to in the place of references.

    A model that holds itself ends there: the inner one is any object.
    """
    if isinstance(value, list):
        return [_inlined(one, whole, inside) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {
        key: _inlined(one, whole, inside)
        for key, one in value.items()
        if key not in ("$defs", "definitions", "$ref") and not _is_mapping(one)
    }
    target = value.get("$ref")
    if not isinstance(target, str):
        return kept
    if target in inside or (target == "#" and inside):
        return {"type": "object", **kept}
    found: Any = whole
    for step in target.split("/")[1:]:
        found = found[step.replace("~1", "/").replace("~0", "~")]
    return {**_inlined(found, whole, (*inside, target)), **kept}


def _is_mapping(value: Any) -> bool:
    """Return whether a value is the word of OpenAPI for the field that tells types."""
    return isinstance(value, dict) and "propertyName" in value and "mapping" in value
