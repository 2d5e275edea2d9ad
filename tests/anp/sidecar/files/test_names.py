"""Plain names for files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.sidecar.files.call_folder import names_for, plain_name


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
