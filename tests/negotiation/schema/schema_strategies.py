"""Hypothesis strategies: schemas, values that fit them, and renamed twins."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NAMES = ["productId", "unit_price", "name", "item-count", "city", "unit", "Zip Code"]
HOSTILE_NAMES = [
    "a'b",
    'a"b',
    "line\nbreak",
    "x']; import os #",
    "__class__",
    "{message_id}",
    "\\",
    "",
    "名前",
    "\u202e",
]


def scalars() -> st.SearchStrategy[dict[str, Any]]:
    """Schemas of one scalar type."""
    low = st.integers(-5, 3)
    return st.one_of(
        st.just({"type": "boolean"}),
        st.just({"type": "null"}),
        st.sampled_from([{"type": "number"}, {"type": "integer"}, {"type": "string"}]),
        st.builds(
            lambda kind, a, b: {"type": kind, "minimum": a, "maximum": a + b},
            st.sampled_from(["integer", "number"]),
            low,
            st.integers(0, 5),
        ),
        st.builds(
            lambda a, b: {"type": "number", "exclusiveMinimum": a, "maximum": a + b},
            low,
            st.integers(1, 5),
        ),
        st.builds(
            lambda a, b: {"type": "string", "minLength": a, "maxLength": a + b},
            st.integers(0, 3),
            st.integers(0, 4),
        ),
        st.builds(
            lambda values: {"enum": values},
            st.lists(
                st.sampled_from(["a", "b", 1, 2.5, None, True]),
                min_size=1,
                max_size=3,
                unique_by=repr,
            ),
        ),
    )


def objects(
    inner: st.SearchStrategy[Any], names: list[str]
) -> st.SearchStrategy[dict[str, Any]]:
    """Schemas of objects with some of `names`."""

    @st.composite
    def build(draw: st.DrawFn) -> dict[str, Any]:
        chosen = draw(st.lists(st.sampled_from(names), max_size=4, unique=True))
        properties = {name: draw(inner) for name in chosen}
        required = [name for name in chosen if draw(st.booleans())]
        schema: dict[str, Any] = {
            "type": "object",
            "properties": properties,
            "required": required,
        }
        extra = draw(st.sampled_from(["absent", False, True, "schema"]))
        if extra != "absent":
            schema["additionalProperties"] = (
                {"type": "string"} if extra == "schema" else extra
            )
        return schema

    return build()


def schemas(names: list[str] = NAMES) -> st.SearchStrategy[Any]:
    """Schemas that the rules handle."""
    return st.recursive(
        st.one_of(scalars(), st.just({})),
        lambda inner: st.one_of(
            objects(inner, names),
            st.builds(lambda items: {"type": "array", "items": items}, inner),
            st.builds(
                lambda one: {"anyOf": [one, {"type": "null"}]},
                inner.filter(lambda one: one != {}),
            ),
        ),
        max_leaves=6,
    )


ANY = st.sampled_from([None, True, 0, 1.5, "x", [], {}, [1], {"city": 1}])


def values_of(schema: Any) -> st.SearchStrategy[Any]:
    """Values that fit a schema made here."""
    if schema in ({}, True):
        return ANY
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema:
        return st.one_of([values_of(one) for one in schema["anyOf"]])
    match schema["type"]:
        case "null":
            return st.none()
        case "boolean":
            return st.booleans()
        case "integer":
            return st.integers(schema.get("minimum"), schema.get("maximum"))
        case "number":
            low = schema.get("minimum", schema.get("exclusiveMinimum"))
            return st.floats(
                low,
                schema.get("maximum"),
                exclude_min="exclusiveMinimum" in schema,
                allow_nan=False,
                allow_infinity=False,
                width=32,
            )
        case "string":
            return st.text(
                st.characters(codec="utf-8"),
                min_size=schema.get("minLength", 0),
                max_size=schema.get("maxLength", 9),
            )
        case "array":
            return st.lists(values_of(schema.get("items", {})), max_size=3)
        case _:
            return object_values(schema)


@st.composite
def object_values(draw: st.DrawFn, schema: dict[str, Any]) -> dict[str, Any]:
    """Objects that fit, with and without their optional and unnamed properties."""
    value = {}
    for name, inner in schema.get("properties", {}).items():
        if name in schema.get("required", ()) or draw(st.booleans()):
            value[name] = draw(values_of(inner))
    extra = schema.get("additionalProperties", True)
    if extra is not False and draw(st.booleans()):
        name = draw(st.sampled_from(["more", *NAMES]))
        if name not in schema.get("properties", {}):
            value[name] = draw(values_of(extra))
    return value


def renamed(schema: Any) -> Any:
    """Return the twin of a schema whose names differ in case and separators."""
    if not isinstance(schema, dict):
        return schema
    twin = dict(schema)
    if "properties" in schema:
        twin["properties"] = {
            other_name(name): renamed(inner)
            for name, inner in schema["properties"].items()
        }
        twin["required"] = [other_name(name) for name in schema["required"]]
        twin.pop("additionalProperties", None)
    if "items" in schema:
        twin["items"] = renamed(schema["items"])
    if "anyOf" in schema:
        twin["anyOf"] = [renamed(one) for one in schema["anyOf"]]
    return twin


def other_name(name: str) -> str:
    """Return a name that means the same."""
    return name.upper() if name.isalpha() else name.replace("_", "-").replace(" ", "_")


@st.composite
def varied(draw: st.DrawFn, schema: Any) -> Any:
    """Schemas that are like `schema` but for some changes, harmless and other ones."""
    change = draw(st.integers(0, 9))
    if not isinstance(schema, dict) or change == 0:
        return draw(scalars())
    if change == 1:
        return {"anyOf": [schema, {"type": "null"}]}
    twin = dict(schema)
    if "properties" in schema:
        kept = [name for name in schema["properties"] if draw(st.integers(0, 4))]
        rename = draw(st.booleans())
        names = {name: other_name(name) if rename else name for name in kept}
        twin["properties"] = {
            names[name]: draw(varied(schema["properties"][name])) for name in kept
        }
        stays = draw(st.booleans())
        twin["required"] = [
            names[name] for name in kept if stays and name in schema["required"]
        ]
        twin.pop("additionalProperties", None)
        extra = draw(st.sampled_from([None, False, True, {"type": "string"}]))
        if extra is not None:
            twin["additionalProperties"] = extra
    if "items" in schema:
        twin["items"] = draw(varied(schema["items"]))
    for limit, step in (("minimum", -1), ("maximum", 1), ("minLength", -1)):
        if limit in twin and draw(st.booleans()):
            twin[limit] = max(0, twin[limit] + step)
    if twin.get("type") == "integer" and draw(st.booleans()):
        twin["type"] = "number"
    if "enum" in twin and draw(st.booleans()):
        twin["enum"] = [*twin["enum"], "more"]
    return twin
