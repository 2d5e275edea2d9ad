"""Contents at rest open only at their place, and only with their secret."""

from __future__ import annotations

import pytest

from anp.sidecar.home.rest_cipher import RestCipher
from cache.errors import RecordError


def test_a_content_opens_at_its_place_alone() -> None:
    cipher = RestCipher(b"\x01" * 32, "a part of a session")
    sealed = cipher.seal(b"content", "event/a/1")
    assert sealed != cipher.seal(b"content", "event/a/1")
    assert cipher.open(sealed, "event/a/1") == b"content"
    other = RestCipher(b"\x02" * 32, "a part of a session")
    for one, data, place in (
        (cipher, sealed, "event/a/2"),
        (cipher, sealed[:-1], "event/a/1"),
        (cipher, b"", "event/a/1"),
        (other, sealed, "event/a/1"),
    ):
        with pytest.raises(RecordError, match="a part of a session cannot be opened"):
            one.open(data, place)
