# kind: JSON-RPC with handler table and batches
"""A JSON-RPC 2.0 endpoint over our own functions."""

from __future__ import annotations

import json
from typing import Any, Callable

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602


class RpcError(Exception):
    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(code, message)
        self.code, self.message, self.data = code, message, data

    def to_dict(self) -> dict[str, Any]:
        error = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return error


class Endpoint:
    """Methods are registered with a decorator."""

    def __init__(self) -> None:
        self._methods: dict[str, Callable[..., Any]] = {}

    def method(self, name: str | None = None):
        def decorate(function):
            self._methods[name or function.__name__] = function
            return function

        return decorate

    def handle(self, text: str) -> str | None:
        try:
            message = json.loads(text)
        except json.JSONDecodeError as exc:
            error = RpcError(PARSE_ERROR, "Parse error", {"position": exc.pos})
            return json.dumps(self._reply(None, error=error.to_dict()))
        if isinstance(message, list) and message:
            replies = [r for one in message if (r := self._one(one)) is not None]
            return json.dumps(replies) if replies else None
        reply = self._one(message)
        return None if reply is None else json.dumps(reply)

    def _one(self, message: Any) -> dict[str, Any] | None:
        identifier = message.get("id") if isinstance(message, dict) else None
        try:
            match message:
                case {"jsonrpc": "2.0", "method": str(name), "params": [*args]}:
                    result = self._call(name, *args)
                case {"jsonrpc": "2.0", "method": str(name), "params": {**kwargs}}:
                    result = self._call(name, **kwargs)
                case {"jsonrpc": "2.0", "method": str(name)}:
                    result = self._call(name)
                case _:
                    raise RpcError(INVALID_REQUEST, "Invalid Request")
        except RpcError as exc:
            return self._reply(identifier, error=exc.to_dict())
        if "id" not in message:
            return None
        return self._reply(identifier, result=result)

    def _call(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        if (function := self._methods.get(name)) is None:
            raise RpcError(METHOD_NOT_FOUND, "Method not found", name)
        try:
            return function(*args, **kwargs)
        except TypeError as exc:
            raise RpcError(INVALID_PARAMS, "Invalid params") from exc

    @staticmethod
    def _reply(identifier: Any, **content: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": identifier, **content}


endpoint = Endpoint()


@endpoint.method()
def subtract(minuend: int, subtrahend: int) -> int:
    return minuend - subtrahend


@endpoint.method("text.join")
def _join(*words: str, sep: str = " ") -> str:
    return sep.join(words)


def handle_request(data: bytes) -> bytes | None:
    reply = endpoint.handle(data.decode())
    return reply.encode() if reply is not None else None
