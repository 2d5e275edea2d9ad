# kind: custom exceptions with codes and a hierarchy
"""Errors of the payment protocol, on the wire as {code, message, retryable}."""

from __future__ import annotations

import json
from typing import Any, NoReturn


class ProtocolError(Exception):
    """Base of all errors that cross the wire."""

    code: int = 500
    retryable: bool = False

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details

    def __str__(self) -> str:
        return f"[{self.code}] {self.message}"

    def to_wire(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "message": self.message,
            "retryable": self.retryable,
            **({"details": self.details} if self.details else {}),
        }


class BadRequest(ProtocolError):
    code = 400


class NotFound(ProtocolError):
    code = 404

    def __init__(self, what: str, identifier: str) -> None:
        super().__init__(f"{what} {identifier!r} not found", id=identifier)


class RateLimited(ProtocolError):
    code, retryable = 429, True


_BY_CODE: dict[int, type[ProtocolError]] = {
    cls.code: cls for cls in (BadRequest, RateLimited, ProtocolError)
}


def _fail(error: dict[str, Any]) -> NoReturn:
    code = error.get("code", 500)
    if code == NotFound.code:
        raise NotFound("object", error.get("details", {}).get("id", "?"))
    cls = _BY_CODE.get(code, ProtocolError)
    raise cls(error.get("message") or "no message", **error.get("details", {}))


def decode_response(data: bytes) -> Any:
    message = json.loads(data)
    if error := message.get("error"):
        _fail(error)
    return message["result"]


def decode_or_report(data: bytes) -> dict[str, Any]:
    try:
        result = decode_response(data)
    except (BadRequest, NotFound) as exc:
        return {"ok": False, "error": exc.to_wire(), "kind": type(exc).__name__}
    except ProtocolError as exc:
        if not exc.retryable:
            raise
        return {"ok": False, "error": exc.to_wire(), "kind": exc.__class__.__name__}
    except KeyError as exc:
        raise BadRequest("neither result nor error") from exc
    else:
        return {"ok": True, "result": result}
