"""The patterns in a schema, and the schema without those that are not run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from sandbox.patterns.translation import PatternError, translated

_DATA: Final = frozenset({"const", "enum", "default", "examples"})
"Keywords whose values are data and no schemas."


def pattern_faults(
    schema: Any, at: str = "", *, check: Callable[[str], object] = translated
) -> Iterator[str]:
    """Yield the faults of all patterns in a schema of limited depth, with their places.

    Args:
        at: Place of the schema as a JSON pointer.
        check: Raises `PatternError` for a pattern. `translated` takes little time;
            `compiled` may take some, and finds what is too large for the engine too.
    """
    if isinstance(schema, list):
        for index, one in enumerate(schema):
            yield from pattern_faults(one, f"{at}/{index}", check=check)
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        place = f"{at}/{key.replace('~', '~0').replace('/', '~1')}"
        patterns: Iterable[str] = ()
        if key == "pattern" and isinstance(value, str):
            patterns = (value,)
        elif key == "patternProperties" and isinstance(value, dict):
            patterns = value
        for pattern in patterns:
            try:
                check(pattern)
            except PatternError as exc:
                yield f"{place}: {exc}"
        if key not in _DATA:
            yield from pattern_faults(value, place, check=check)


def without_faults(schema: Any) -> Any:
    """Return a schema without the patterns that `pattern_faults` finds.

    Everything that they would refuse is allowed then.
    """
    if isinstance(schema, list):
        return [without_faults(one) for one in schema]
    if not isinstance(schema, dict) or not any(pattern_faults(schema)):
        return schema
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "pattern" and isinstance(value, str) and not _is_good(value):
            continue
        if key == "patternProperties" and isinstance(value, dict):
            good = {name: one for name, one in value.items() if _is_good(name)}
            kept[key] = {name: without_faults(one) for name, one in good.items()}
            continue
        kept[key] = value if key in _DATA else without_faults(value)
    if len(kept.get("patternProperties", ())) < len(
        schema.get("patternProperties", ())
    ):
        # What the pattern was for cannot be told from the rest any more.
        kept.pop("additionalProperties", None)
        kept.pop("unevaluatedProperties", None)
    return kept


def _is_good(pattern: str) -> bool:
    try:
        translated(pattern)
    except PatternError:
        return False
    return True
