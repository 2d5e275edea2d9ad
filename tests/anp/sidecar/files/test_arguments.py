"""Parameters for the files of a task, and plain names for files."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.interaction.elements import Part
from anp.sidecar.files.arguments import file_places
from anp.sidecar.files.names import names_for, plain_name

PATH = {"type": "string", "format": "path"}
OBJECT: dict[str, Any] = {"properties": {"mediaType": {}, "data": {}}}


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def files(*names: str) -> list[Part]:
    return [Part.data(b"x", name=name) for name in names]


def test_a_file_goes_to_the_parameter_of_its_name_else_to_the_next() -> None:
    both = schema(first=PATH, second=PATH, text={"type": "string"})
    assert file_places(both, {}, files("second", "a.txt")).paths == {
        "second": 0,
        "first": 1,
    }
    assert file_places(both, {"first": "x"}, files("a")).paths == {"second": 0}


def test_an_optional_path_and_lists_take_files() -> None:
    optional = schema(book={"anyOf": [PATH, {"type": "null"}]})
    assert file_places(optional, {}, files("x")).paths == {"book": 0}
    several = schema(one=PATH, more={"type": "array", "items": PATH})
    found = file_places(several, {}, files("a", "b", "c"))
    assert (found.paths, found.lists) == ({"one": 0}, {"more": [1, 2]})
    agent = schema(text={"type": "string"}, files={"type": "array", "items": OBJECT})
    assert file_places(agent, {"text": "go"}, files("a", "b")).objects == {
        "files": [0, 1]
    }


def test_a_file_without_a_place_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'c\.txt'"):
        file_places(schema(a=PATH), {}, files("x", "folder/c.txt"))
    with pytest.raises(ValueError, match="takes no file"):
        file_places(schema(text={"type": "string"}), {}, files("x"))
    with pytest.raises(ValueError, match="takes no file"):
        file_places(True, {}, files("x"))


@pytest.mark.parametrize(
    ("given_name", "wanted"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\x\\y.txt", "y.txt"),
        (".bashrc", "bashrc"),
        ("a\n\x00b", "ab"),
        ("..", ""),
        ("x/", ""),
        ("ü" * 300, "ü" * 100),
    ],
)
def test_a_name_is_plain(given_name: str, wanted: str) -> None:
    assert plain_name(given_name) == wanted


@given(st.text())
def test_no_name_leaves_its_folder(name: str) -> None:
    tried = next(names_for(name))
    assert tried
    assert tried not in (".", "..")
    assert "/" not in tried
    assert not tried.startswith(".")
    assert len(tried.encode("utf-8", "replace")) <= 220


def test_equal_names_get_numbers_before_their_endings() -> None:
    names = names_for("a.tar.gz")
    assert [next(names) for _ in range(2)] == ["a.tar.gz", "a.tar-1.gz"]
