"""Parts of other agents' answers as blocks of MCP; what is none of them stays JSON."""

from __future__ import annotations

import base64
from typing import Any

import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anp.sidecar.mcp.contents import bytes_block, with_blocks

PNG = base64.b64encode(b"\x89PNG").decode()


def test_bytes_leave_the_json_and_come_as_blocks() -> None:
    parts = [
        {"mediaType": "image/png", "data": PNG, "name": "a.png"},
        {"mediaType": "audio/wav", "data": "AQID"},
        {"mediaType": "image/svg+xml", "data": "AQID"},
        {"mediaType": "text/plain", "text": "see", "uri": "x://a"},
        {"mediaType": "text/csv", "uri": "x://b"},
    ]
    shown, blocks, are_all = with_blocks({"text": "t", "parts": parts})
    assert not are_all
    assert shown["text"] == "t"
    assert shown["parts"][0] == {"mediaType": "image/png", "name": "a.png", "size": 4}
    assert [type(block) for block in blocks] == [
        types.ImageContent,
        types.AudioContent,
        # It may hold scripts, so no client shows it as a picture.
        types.EmbeddedResource,
        types.EmbeddedResource,
        types.ResourceLink,
    ]
    assert parts[0]["data"] == PNG


@pytest.mark.parametrize(
    "output",
    [
        None,
        [],
        {"parts": 3},
        {"parts": [3]},
        {"parts": [{"mediaType": "image/png"}]},
        {"parts": [{"data": PNG}]},
        {"parts": [{"mediaType": "image/png", "data": "no base64"}]},
        {"parts": [{"mediaType": "image/png", "data": PNG, "wheels": 4}]},
    ],
)
def test_other_outputs_stay_as_they_are(output: Any) -> None:
    assert with_blocks(output) == (output, [], False)


IMAGE = types.ImageContent(type="image", data=PNG, mime_type="image/png")


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        (
            {"text": "", "parts": [{"mediaType": "image/png", "data": PNG}]},
            {"text": "", "parts": [{"mediaType": "image/png", "size": 4}]},
        ),
        # `read_media_file` of the server of MCP's own for files.
        (
            {"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]},
            {"content": [{"type": "image", "mimeType": "image/png", "size": 4}]},
        ),
        # An HTTP service that answers with bytes, and a Python function that does.
        (
            {"mediaType": "image/png", "data": PNG, "size": 4},
            {"mediaType": "image/png", "size": 4},
        ),
        (
            {"result": [{"mediaType": "image/png", "data": PNG}]},
            {"result": [{"mediaType": "image/png", "size": 4}]},
        ),
    ],
)
def test_an_answer_that_is_a_picture_is_that_block_alone(
    output: dict[str, Any], shown: dict[str, Any]
) -> None:
    assert with_blocks(output) == (shown, [IMAGE], True)


def test_texts_among_pictures_are_blocks_in_their_order_with_annotations() -> None:
    note = {"audience": ["user"], "priority": 0.5}
    parts = [
        {"mediaType": "image/png", "data": PNG, "annotations": note},
        {"mediaType": "text/plain", "text": "a hive", "annotations": {"priority": 7}},
    ]
    _, blocks, are_all = with_blocks({"text": "a hive", "parts": parts})
    told = types.Annotations(audience=["user"], priority=0.5)
    # What a peer says outside of MCP's words is left out.
    words = types.TextContent(type="text", text="a hive")
    assert blocks == [IMAGE.model_copy(update={"annotations": told}), words]
    assert are_all


def test_a_picture_beside_other_values_comes_after_them() -> None:
    file = {"mimeType": "image/png", "data": PNG}
    shown, blocks, are_all = with_blocks({"bees": 3, "photo": file})
    assert shown == {"bees": 3, "photo": {"mimeType": "image/png", "size": 4}}
    assert (blocks, are_all) == ([IMAGE], False)
    text = {"mimeType": "text/plain", "data": "hive"}
    assert with_blocks({"photo": text}) == ({"photo": text}, [], False)


VALUES = st.text(max_size=8) | st.integers() | st.just(PNG)
NAMES = st.sampled_from(["mediaType", "data", "text", "uri", "name", "more"])


@given(st.lists(st.dictionaries(NAMES, VALUES), max_size=4))
def test_no_output_of_a_peer_breaks_the_face(parts: list[dict[str, Any]]) -> None:
    shown, blocks, _ = with_blocks({"parts": parts})
    assert len(shown["parts"]) == len(parts)
    assert len(blocks) in {0, len(parts)}
    for block in blocks:
        types.CallToolResult(content=[block]).model_dump_json()


def test_bytes_under_a_uri() -> None:
    block = bytes_block(b"abc", media_type="application/zip", uri="anpd:x")
    assert isinstance(block, types.EmbeddedResource)
    assert isinstance(block.resource, types.BlobResourceContents)
    assert base64.b64decode(block.resource.blob) == b"abc"
