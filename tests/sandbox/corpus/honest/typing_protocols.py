# kind: typing: Protocol, Generic, overload, Literal, ParamSpec, cast, TYPE_CHECKING
"""Codecs behind one interface, chosen by content type."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Generic, Literal, Optional, Protocol, TypeVar, cast, overload
from urllib.parse import parse_qsl, urlencode

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")
ContentType = Literal["json", "form", "b64"]


class Codec(Protocol):
    """What every codec can do."""

    name: str

    def encode(self, value: Any) -> bytes: ...

    def decode(self, data: bytes) -> Any: ...


class JsonCodec:
    name = "json"

    def encode(self, value: Any) -> bytes:
        return json.dumps(value).encode()

    def decode(self, data: bytes) -> Any:
        return json.loads(data)


class FormCodec:
    name = "form"

    def encode(self, value: Mapping[str, Any]) -> bytes:
        return urlencode(value).encode("ascii")

    def decode(self, data: bytes) -> dict[str, str]:
        return dict(parse_qsl(data.decode("ascii"), strict_parsing=True))


class Wrapped:
    """A codec around another."""

    def __init__(self, inner: Codec) -> None:
        self.inner = inner
        self.name = f"b64({inner.name})"

    def encode(self, value: Any) -> bytes:
        return base64.b64encode(self.inner.encode(value))

    def decode(self, data: bytes) -> Any:
        return self.inner.decode(base64.b64decode(data))


class Result(Generic[T]):
    """A value or an error."""

    def __init__(self, value: Optional[T] = None, error: str = "") -> None:
        self._value = value
        self.error = error

    def __bool__(self) -> bool:
        return not self.error

    def unwrap(self) -> T:
        if self.error:
            raise RuntimeError(self.error)
        return cast(T, self._value)


_CODECS: dict[ContentType, Codec] = {
    "json": JsonCodec(),
    "form": FormCodec(),
    "b64": Wrapped(JsonCodec()),
}


@overload
def first(items: list[T]) -> T: ...
@overload
def first(items: list[T], default: T) -> T: ...
def first(items, default=None):
    return items[0] if items else default


def _try(kind: ContentType, data: bytes) -> Result[Any]:
    try:
        return Result(_CODECS[kind].decode(data))
    except (ValueError, KeyError) as exc:
        return Result(error=f"{kind}: {type(exc).__name__}")


def transcode(data: bytes, source: ContentType, target: ContentType) -> bytes:
    return _CODECS[target].encode(_try(source, data).unwrap())


def guess(data: bytes) -> dict[str, Any]:
    results = {codec.name: _try(kind, data) for kind, codec in _CODECS.items()}
    return {
        "best": first([name for name, result in results.items() if result], "none"),
        "errors": [result.error for result in results.values() if not result],
    }
