"""Bodies with files, as other people's readers of forms understand them."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartParser

from anp.sidecar.attachments import ToolError
from anp.sidecar.attachments.http.bodies import multipart_body
from anp.sidecar.attachments.http.openapi import read_openapi
from anp.sidecar.attachments.http.operations import HttpOperation, build_request
from anp.sidecar.attachments.part_json import FILE
from tests.anp.sidecar.attachments.http.test_openapi import body, document, only

BINARY_30 = {"type": "string", "format": "binary"}
BINARY_31 = {"type": "string", "contentMediaType": "application/octet-stream"}
MULTIPART = "multipart/form-data"


def file(data: bytes, media_type: str = "image/png", **more: str) -> dict[str, str]:
    return {
        "mediaType": media_type,
        "data": base64.b64encode(data).decode(),
        **more,
    }


def form(
    *, version: str = "3.1.0", encoding: Any = None, **fields: Any
) -> HttpOperation:
    """Return an operation whose body is a form with these fields."""
    schema = {"type": "object", "properties": fields}
    made = body(schema, MULTIPART, required=True)
    if encoding:
        made["requestBody"]["content"][MULTIPART]["encoding"] = encoding
    return only(document(made, method="post", version=version))


async def read(content: bytes, content_type: str) -> list[tuple[str, Any]]:
    """Return the fields of a form, a file as its name, type and bytes."""

    async def stream() -> AsyncGenerator[bytes, None]:
        yield content

    headers = Headers({"content-type": content_type})
    found: list[tuple[str, Any]] = []
    for name, value in (await MultiPartParser(headers, stream()).parse()).multi_items():
        if isinstance(value, UploadFile):
            data = await value.read()
            found.append((name, (value.filename, value.content_type, data)))
        else:
            found.append((name, value))
    return found


@pytest.mark.parametrize(
    ("version", "binary"),
    [
        ("3.0.3", BINARY_30),
        ("3.0.3", {**BINARY_30, "nullable": True}),
        ("3.1.0", BINARY_31),
        ("3.1.0", {"anyOf": [BINARY_31, {"type": "null"}]}),
    ],
)
async def test_a_form_takes_files_beside_plain_fields(
    version: str, binary: dict[str, Any]
) -> None:
    many = {"type": "array", "items": binary}
    fields = {"title": {"type": "string"}, "photo": binary, "more": many, "n": {}}
    made = form(version=version, **fields, tags={"type": "array"}, about={})
    schemas = made.input_schema["properties"]
    assert schemas["photo"] == FILE
    assert schemas["more"] == {"type": "array", "items": FILE}
    photo, note = bytes(range(256)), b"--anpd\r\n\r\n"
    request = build_request(
        made,
        {
            "title": "Tü\r\n--x",
            "photo": file(photo, name="a.png"),
            "more": [file(note, "text/plain"), file(b"", "nonsense\r\nX: y", name="b")],
            "n": 7,
            "tags": ["a", 1, True],
            "about": {"a": [None]},
        },
    )
    assert request.content is not None
    found = await read(request.content, request.headers["Content-Type"])
    assert found == [
        ("title", "Tü\r\n--x"),
        ("photo", ("a.png", "image/png", photo)),
        ("more", ("file", "text/plain", note)),
        ("more", ("b", "application/octet-stream", b"")),
        ("n", "7"),
        ("tags", "a"),
        ("tags", "1"),
        ("tags", "true"),
        ("about", '{"a": [null]}'),
    ]


# HTML leaves a backslash as it is; this reader takes one before the closing quotation
# mark for an escape.
NAMES = st.text(max_size=20).map(lambda text: text.rstrip("\\"))


@given(NAMES, NAMES, st.binary(max_size=40))
async def test_no_name_or_content_reaches_another_field(
    field: str, name: str, data: bytes
) -> None:
    try:
        content, kind = multipart_body(
            {f"f{field}": file(data, name=f"n{name}"), "last": field},
            frozenset({f"f{field}"}),
            {},
        )
    except ToolError:
        with pytest.raises(UnicodeEncodeError):
            (field + name).encode()
        return
    head, _, rest = content.partition(b"\r\n\r\n")
    assert head.count(b"\r\n") == 2
    assert rest.startswith(data + b"\r\n--anpd-")
    first, last = await read(content, kind)
    assert (first[1][2], last) == (data, ("last", field))


def test_content_types_of_fields_are_those_of_the_document() -> None:
    encoding = {"a": {"contentType": "application/xml"}, "b": {"contentType": "x, y"}}
    made = form(a={"type": "string"}, b={"type": "string"}, encoding=encoding)
    content = build_request(made, {"a": "<x/>", "b": "1"}).content
    assert content is not None
    assert b'name="a"\r\nContent-Type: application/xml\r\n\r\n<x/>' in content
    assert b'name="b"\r\n\r\n1' in content


@pytest.mark.parametrize(
    ("media_type", "sent"),
    [
        ("application/octet-stream", "application/octet-stream"),
        ("image/jpeg", "image/jpeg"),
        ("image/*", "image/png"),
        ("*/*", "image/png"),
    ],
)
def test_a_body_of_bytes_is_one_file(media_type: str, sent: str) -> None:
    made = only(document(body({}, media_type, required=True), method="put"))
    assert made.input_schema["properties"] == {"body": FILE}
    request = build_request(made, {"body": file(b"\x00\xff")})
    assert (request.content, request.headers["Content-Type"]) == (b"\x00\xff", sent)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"mediaType": "image/png", "data": "?"}, "not base64"),
        ({"mediaType": "image/png"}, "bytes in data"),
        ("text", "bytes in data"),
        (file(b"", "text/plain"), "text/plain is not image"),
    ],
)
def test_what_is_no_fitting_file_is_refused(given: Any, reason: str) -> None:
    made = only(document(body({}, "image/*", required=True), method="put"))
    with pytest.raises(ToolError, match=reason):
        build_request(made, {"body": given})


def test_forms_in_other_shapes_are_left_out_with_their_reason() -> None:
    for made in (
        body({"type": "array"}, MULTIPART, required=True),
        body({}, "multipart/mixed", required=True),
    ):
        read = read_openapi(document(made, method="post"))
        assert read.operations == ()
        assert len(read.skipped) == 1
