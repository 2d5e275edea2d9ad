"""The shapes that a module tells of its calls, read from its source."""

from __future__ import annotations

import pytest

from negotiation.trial.module_shapes import ItemCalls, ModuleShapes, shapes_in


def test_shapes_are_read_without_running_the_module() -> None:
    source = 'SHAPES = {"each": [["shop.price", "request", ["items"]]]}\nraise OSError'
    each = (ItemCalls("shop.price", "request", ("items",)),)
    assert shapes_in(source) == ModuleShapes(each=each)


@pytest.mark.parametrize(
    "told",
    [
        "{'each': {}}",
        "{'again': 'shop.price'}",
        "{'fails': [['shop.price', ['state'], {1}, 'GONE']]}",
        "{'fails': [['shop.price', ['state'], b'', 'GONE']]}",
        "{'fails': [['shop.price', ['state'], 1e999, 'GONE']]}",
        "{'fallbacks': [['shop.price', 'shop.old', ['state'], ...]]}",
        "[]",
        "print()",
    ],
)
def test_what_is_no_json_of_that_form_tells_nothing(told: str) -> None:
    assert shapes_in(f"SHAPES = {told}") == ModuleShapes()
