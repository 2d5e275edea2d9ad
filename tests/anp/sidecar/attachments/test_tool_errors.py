"""Codes in the errors of tools."""

from __future__ import annotations

from typing import Any

import pytest

from anp.sidecar.attachments.tool_errors import tool_error


@pytest.mark.parametrize(
    ("said", "text", "code", "message"),
    [
        ({"code": 404, "message": "no such sku"}, "x", 404, "no such sku"),
        ({"error": {"code": 409, "message": "sold out"}}, "x", 409, "sold out"),
        ({"error": {"code": "409", "message": "sold out"}}, "", 409, "sold out"),
        ({"error": "gone", "status": 410}, "x", 410, "gone"),
        ({"code": "SOLD_OUT", "message": "none left"}, "", 500, "SOLD_OUT: none left"),
        (
            {"error": {"code": "SOLD_OUT", "status": 409, "message": "none left"}},
            "",
            409,
            "SOLD_OUT: none left",
        ),
        ({"code": -32042, "message": "busy"}, "", 500, "-32042: busy"),
        ({"code": 404}, "words", 404, "words"),
        ({"name": "x"}, "words", 500, "words"),
        ({"code": True}, "words", 500, "words"),
        ({"code": ""}, "words", 500, "words"),
        (None, '{"code": 404, "message": "no such sku"}', 404, "no such sku"),
        (None, '{"code": 404', 404, '{"code": 404'),
        (None, "404: no such sku", 404, "404: no such sku"),
        (None, "404", 404, "404"),
        (None, "[422] bad date", 422, "[422] bad date"),
        (None, "404 Not Found", 404, "404 Not Found"),
        (None, "Error 404: gone", 404, "Error 404: gone"),
        (None, "HTTP 503 try later", 503, "HTTP 503 try later"),
        (None, "HTTP/1.1 429 Too Many", 429, "HTTP/1.1 429 Too Many"),
        (None, "Error code: 451", 451, "Error code: 451"),
        (
            None,
            "Error executing tool order: 409: sold out",
            409,
            "Error executing tool order: 409: sold out",
        ),
        (None, "500 sheets are too many", 500, "500 sheets are too many"),
        (None, "404 sheets are too many", 500, "404 sheets are too many"),
        (None, "Error 4040: odd", 500, "Error 4040: odd"),
        (None, "it costs 404 euros", 500, "it costs 404 euros"),
        (None, "200: fine", 500, "200: fine"),
        (None, "", 500, "the tool failed without a word"),
    ],
)
def test_the_code_of_a_tool_is_found(
    said: Any, text: str, code: int, message: str
) -> None:
    found = tool_error(said, text)
    assert (found.code, found.message) == (code, message)
