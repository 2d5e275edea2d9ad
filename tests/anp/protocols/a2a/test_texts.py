"""The texts of the protocols that carry A2A, and what agents answer."""

from __future__ import annotations

import contextlib
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.interaction.elements import Part
from anp.protocols.a2a import A2A_URIS, a2a_document
from anp.protocols.a2a.objects import (
    A2aMessage,
    A2aTask,
    Artifact,
    ArtifactUpdate,
    StatusUpdate,
    TaskUpdate,
)
from anp.protocols.a2a.results import read_result
from anp.protocols.a2a.words import A2aError, A2aVersion
from anp.protocols.a2a.writer import write_stream
from tests.clauses import clause

DIGESTS = {
    "urn:anpd:a2a:1.0": (
        "e92f6db9e0846b79140a69c5efe47133f2eaf6676edb6230b3a0e53e228416af"
    ),
    "urn:anpd:a2a:0.3": (
        "bdc0cbfe275566b712481683ccbad7473aea26abec9c99ff8cff982564e49540"
    ),
    "urn:anpd:a2a-intent:1": (
        "00694d2b8e00b5095949ab1cae8bc67f2006a5b0ddd039661b96965bf50e38dc"
    ),
}

SAID = A2aMessage(id="m", parts=(Part.text("which?"),), is_agent=True)
DRAWN = Artifact(
    id="map",
    name="map",
    parts=(
        Part.data(b"\0\1", media_type="image/png", name="a.png"),
        Part.value({"a": 2**70}),
    ),
)
UPDATES: list[TaskUpdate] = [
    A2aTask(id="t", context="c", state="working", artifacts=(DRAWN,)),
    SAID,
    StatusUpdate(task="t", context="c", state="x-input-required", message=SAID),
    ArtifactUpdate(task="t", context="c", artifact=DRAWN, append=True, last=True),
]


def test_the_texts_do_not_change() -> None:
    # Another text needs another URI: peers that know one rely on every byte.
    assert DIGESTS.keys() == A2A_URIS.keys()
    for uri, digest in DIGESTS.items():
        text = a2a_document(uri)
        assert f"`{uri}`" in text
        assert hashlib.sha256(text.encode("utf-8")).hexdigest() == digest


@clause("A2A-14", "A2A-15", "A2A-18")
@pytest.mark.parametrize("version", A2aVersion)
@pytest.mark.parametrize("update", UPDATES, ids=lambda one: type(one).__name__)
def test_what_is_written_is_read_again(update: TaskUpdate, version: A2aVersion) -> None:
    assert read_result(write_stream(update, version), version) == update


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["kind", "status", "task", "id", "artifact", "state", "parts"]
            )
            | st.text(max_size=8),
            inner,
            max_size=5,
        )
    ),
)


@given(JSON, st.sampled_from(A2aVersion))
def test_any_answer_is_read_or_refused(value: object, version: A2aVersion) -> None:
    with contextlib.suppress(A2aError):
        read_result(value, version)
