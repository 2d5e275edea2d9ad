"""Runs the owner's Python functions in the owner's interpreter.

Started by `child.py` as a script: `python runner.py FD MAX TARGET`. It
is one file, however long, so that nothing of our installation is on its path; it
imports nothing but the standard library and runs on Python 3.9 and later, which need
not be the daemon's. A frame on the socket FD is a header, big-endian: four bytes of
length and eight of call id, and then that many bytes of JSON, at most MAX;
`child.py` has what they say.
"""

from __future__ import annotations

import sys

# Python puts the folder of a script first on the path, and ours is full of names the
# owner's code may mean; before any other import.
if __name__ == "__main__" and not getattr(sys.flags, "safe_path", False):
    sys.path.pop(0)

if sys.version_info < (3, 9):  # noqa: UP036 -- the owner's Python, not the daemon's
    sys.exit("Python 3.9 or later is needed")

import asyncio
import base64
import binascii
import collections.abc
import contextlib
import contextvars
import dataclasses
import datetime
import decimal
import enum
import functools
import importlib
import importlib.util
import inspect
import io
import json
import os
import pathlib
import runpy
import socket
import struct
import tempfile
import threading
import types
import typing
import uuid
from collections.abc import Callable, Iterable
from inspect import getattr_static
from typing import Any

HEADER = struct.Struct(">IQ")
"Length of the JSON, and the id of the call it belongs to; 0 for none."

MAX_MESSAGE = 500
"Longest error message, in characters."

WINDOW = 64
"Updates that may be on their way before the daemon says that it takes more."

LONG = 64 * 1024
"Characters from which a text is long."

ESCAPED = bytes(range(0x20)) + b'"\\'
"Characters of ASCII that are written in escapes."

MAX_WAITING = 8
"Threads that wait for their turn to read; one more that has nothing to do ends."

NONE = type(None)
UNIONS = {typing.Union, getattr(types, "UnionType", typing.Union)}
WRAPPERS = {"Final", "NotRequired", "ReadOnly", "Required"}
"Forms around a hint that say something about the name, not about its values."

MISSING = object()
Schema = dict[str, Any]

KINDS = {bool: "boolean", int: "integer", float: "number", str: "string", NONE: "null"}
SCALARS = {kind: {"type": name} for kind, name in KINDS.items()}
"Types that JSON has itself."

TEXTS = {
    datetime.datetime: ("date-time", datetime.datetime.fromisoformat),
    datetime.date: ("date", datetime.date.fromisoformat),
    datetime.time: ("time", datetime.time.fromisoformat),
    uuid.UUID: ("uuid", uuid.UUID),
    decimal.Decimal: (None, decimal.Decimal),
    pathlib.Path: ("path", pathlib.Path),
}
"Types that travel as strings: their `format`, and how a string becomes one."

ARRAYS = {list: list, set: set, frozenset: frozenset, collections.abc.Set: set}
ARRAYS |= dict.fromkeys((collections.abc.Sequence, collections.abc.Iterable), list)
RESULT = object()
"Stands outermost among the types around one in what a function returns."

FILE: Schema = {
    "type": "object",
    "properties": {
        "mediaType": {"type": "string"},
        "name": {"type": "string"},
        "data": {"type": "string", "description": "Bytes in base64."},
    },
    "required": ["mediaType", "data"],
}
"Bytes in JSON; the same as `FILE` of `part_json.py`."

BYTES = (bytes, bytearray, memoryview)
BINARY = "application/octet-stream"

MAX_INLINE = 1024 * 1024
"Bytes of a content that goes in a message itself."

BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
"Media types of bytes of which the function does not say what they are."

METHODS = (types.FunctionType, staticmethod, classmethod)
OBJECTS = {dict, collections.abc.Mapping, collections.abc.MutableMapping}


class BadValue(ValueError):
    """A value does not fit its type hint, or its limit; the caller may read how."""

    caller_message = property(str)


class CallCancelled(Exception):
    """The caller has given up; `Context` raises it where the function looks."""

    code = 504
    caller_message = "cancelled"


class Failure(Exception):
    """A call failed with a code of ours, see `anp.sidecar.attachments.attachment`."""

    def __init__(self, code: int, message: str, *, ran: bool = True) -> None:
        super().__init__(message)
        self.code = code
        self.caller_message = message
        self.ran = ran


class TaskReturned(BaseException):
    """The function hands the task back; no `except Exception` keeps that from us."""


class ExactFloat(float):
    """A number of JSON with more digits than a float can hold.

    It calculates as its nearest float, and its `str` has every digit. A shorter form of
    `jsonic.exact_numbers`, which the owner's interpreter cannot import.
    """

    used = False
    "True once there was one in this process; then the slower encoder is needed."

    def __new__(cls, text: str) -> ExactFloat:
        made = super().__new__(cls, text)
        made.text = text
        ExactFloat.used = True
        return made

    text: str

    def __repr__(self) -> str:
        return self.text

    __str__ = __repr__

    def __reduce__(self) -> tuple[Any, ...]:
        return ExactFloat, (self.text,)

    def is_integer(self) -> bool:
        return False


def read_number(text: str) -> Any:
    value = float(text)
    if (len(text) < 16 and "e" not in text.lower()) or repr(value) == text:
        return value
    if decimal.Decimal(text) == decimal.Decimal(repr(value)):
        return value
    return ExactFloat(text)


class ExactEncoder(json.JSONEncoder):
    """Writes JSON with every digit of an `ExactFloat`."""

    def iterencode(self, o: Any, _one_shot: bool = False) -> Any:
        if not ExactFloat.used:
            return super().iterencode(o, _one_shot)
        module: Any = json.encoder
        write = (None, self.default, module.encode_basestring, None, number_text)
        form = (self.key_separator, self.item_separator, False, False, _one_shot)
        return module._make_iterencode(*write, *form)(o, 0)


def number_text(value: float) -> str:
    if isinstance(value, ExactFloat):
        return value.text
    return json.dumps(float(value), allow_nan=False)


# Made once: `json.loads` and `json.dumps` with options make new ones for each call.
DECODER = json.JSONDecoder(parse_float=read_number)
ENCODER = ExactEncoder(ensure_ascii=False, allow_nan=False)


def written(frame: dict[str, Any]) -> bytes:
    """Return a frame as JSON; a long text of an output is written in pieces.

    The encoder would hold it twice more, and looks at each character, which takes
    three times as long.
    """
    output = frame.get("output")
    if (
        type(output) is not dict
        or len(frame) > 1
        or not any(type(item) is str and len(item) > LONG for item in output.values())
    ):
        return ENCODER.encode(frame).encode()
    made = io.BytesIO()
    made.write(b'{"output": {')
    for place, (key, item) in enumerate(output.items()):
        made.write((", " if place else "").encode() + ENCODER.encode(key).encode())
        made.write(b": ")
        if type(item) is not str:
            made.write(ENCODER.encode(item).encode())
            continue
        made.write(b'"')
        for at in range(0, len(item), LONG):
            piece = item[at : at + LONG]
            plain = piece.encode() if piece.isascii() else b""
            if not plain or len(plain.translate(None, ESCAPED)) < len(plain):
                plain = ENCODER.encode(piece)[1:-1].encode()
            made.write(plain)
        made.write(b'"')
    made.write(b"}}")
    return made.getvalue()


def bare(hint: Any) -> tuple[Any, str | None]:
    """Take `Annotated`, `Required` and the like off a hint; return it and its text."""
    text: str | None = None
    while True:
        origin = typing.get_origin(hint)
        if hasattr(hint, "__metadata__"):
            notes = [note for note in hint.__metadata__ if isinstance(note, str)]
            text = text or (notes[0] if notes else None)
            hint = hint.__origin__
        elif getattr(origin, "_name", None) in WRAPPERS:
            hint = typing.get_args(hint)[0]
        elif isinstance(hint, typing.TypeVar):
            hint = hint.__bound__ or Any
        elif hasattr(hint, "__supertype__"):
            hint = hint.__supertype__
        else:
            return hint, text


def is_typed_dict(hint: Any) -> bool:
    return isinstance(hint, type) and hasattr(hint, "__total__")


def hints_of(thing: Any) -> dict[str, Any]:
    """Return the type hints of a function or class that can be resolved."""
    try:
        return typing.get_type_hints(thing, include_extras=True)
    except Exception:  # noqa: BLE001 -- names that exist for type checkers only
        found = getattr(thing, "__annotations__", {}).items()
        return {name: hint for name, hint in found if not isinstance(hint, str)}


@functools.cache
def fields_of(hint: Any) -> dict[str, tuple[Any, bool, Any]]:
    """Return `{name: (hint, required, default)}` of a dataclass or TypedDict."""
    hints = hints_of(hint)
    found: dict[str, tuple[Any, bool, Any]] = {}
    if is_typed_dict(hint):
        for name, each in hints.items():
            required = name in hint.__required_keys__
            # With postponed annotations `__required_keys__` does not see these.
            wrapper = getattr(typing.get_origin(each), "_name", None)
            if wrapper in ("Required", "NotRequired"):
                required = wrapper == "Required"
            found[name] = (each, required, MISSING)
        return found
    for field in dataclasses.fields(hint):
        default = MISSING
        if field.default is not dataclasses.MISSING:
            default = field.default
        required = default is MISSING and field.default_factory is dataclasses.MISSING
        if field.init:
            found[field.name] = (hints.get(field.name, Any), required, default)
    return found


def is_bytes(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, BYTES)


def is_file(hint: Any) -> bool:
    """Tell whether a type is a dataclass of the owner's with bytes and their type."""
    if not (isinstance(hint, type) and dataclasses.is_dataclass(hint)):
        return False
    fields = fields_of(hint)
    data = fields.get("data")
    return data is not None and is_bytes(bare(data[0])[0]) and "media_type" in fields


def is_model(hint: Any) -> bool:
    """Tell whether a type is a model of pydantic, by a method of all its versions."""
    return isinstance(hint, type) and hasattr(hint, "parse_obj")


@functools.cache
def models() -> Any:
    file = pathlib.Path(__file__).with_name("pydantic_models.py")
    return types.SimpleNamespace(**runpy.run_path(str(file)))


def is_large_or_path(value: Any) -> bool:
    """Tell whether a value goes to the caller by way of the folder of its call."""
    if is_file(type(value)):
        value = value.data
    if isinstance(value, BYTES):
        return len(value) > MAX_INLINE
    return isinstance(value, (pathlib.PurePath, io.IOBase))


def is_binary(value: Any) -> bool:
    return isinstance(value, BYTES) or is_file(type(value))


def schema_of(hint: Any, inside: tuple[Any, ...] = ()) -> Schema:
    """Return the JSON Schema of a type hint; what has none allows every value."""
    hint, text = bare(hint)
    schema = dict(plain_schema(hint, inside))
    if text:
        schema["description"] = text
    return schema


def plain_schema(hint: Any, inside: tuple[Any, ...]) -> Schema:
    if hint is None:
        return SCALARS[NONE]
    if isinstance(hint, type) and hint in SCALARS:
        return SCALARS[hint]
    if isinstance(hint, type) and hint in TEXTS:
        form = TEXTS[hint][0]
        return {"type": "string", "format": form} if form else {"type": "string"}
    if is_bytes(hint) or is_file(hint):
        return FILE
    origin, args = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin in UNIONS:
        return union_schema(args, inside)
    if origin is typing.Literal:
        return {"enum": [encode(value) for value in args]}
    if origin is tuple:
        return tuple_schema(args, inside)
    if origin in ARRAYS:
        schema: Schema = {"type": "array"}
        if args and not is_any(args[0]):
            schema["items"] = schema_of(args[0], inside)
        if issubclass(origin, collections.abc.Set):
            schema["uniqueItems"] = True
        return schema
    if origin in OBJECTS:
        schema = {"type": "object"}
        if len(args) == 2 and not is_any(args[1]):
            schema["additionalProperties"] = schema_of(args[1], inside)
        return schema
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"enum": [encode(member) for member in hint]}
    if isinstance(hint, type) and (
        is_typed_dict(hint) or dataclasses.is_dataclass(hint)
    ):
        return record_schema(hint, inside)
    if is_model(hint):
        return dict(models().schema_of(hint, is_result=RESULT in inside))
    return {}


def is_any(hint: Any) -> bool:
    return bare(hint)[0] in (Any, object)


def union_schema(args: tuple[Any, ...], inside: tuple[Any, ...]) -> Schema:
    branches = [schema_of(each, inside) for each in args]
    if {} in branches:
        return {}
    if all(list(branch) == ["type"] for branch in branches):
        kinds = [branch["type"] for branch in branches]
        return {"type": list(dict.fromkeys(kinds))}
    return {"anyOf": branches}


def tuple_schema(args: tuple[Any, ...], inside: tuple[Any, ...]) -> Schema:
    if len(args) == 2 and args[1] is Ellipsis:
        return {"type": "array", "items": schema_of(args[0], inside)}
    if not args:
        return {"type": "array"}
    return {
        "type": "array",
        "prefixItems": [schema_of(each, inside) for each in args],
        "minItems": len(args),
        "maxItems": len(args),
    }


def record_schema(hint: Any, inside: tuple[Any, ...]) -> Schema:
    # A type that holds itself ends here: the inner one is any object.
    if hint in inside:
        return {"type": "object"}
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for name, (each, needed, default) in fields_of(hint).items():
        properties[name] = schema_of(each, (*inside, hint))
        if needed:
            required.append(name)
        elif default is not MISSING:
            add_default(properties[name], default)
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if not is_typed_dict(hint):
        schema["additionalProperties"] = False
    return schema


def add_default(schema: Schema, default: Any) -> None:
    """Note a default that JSON can hold; others stay the function's secret."""
    try:
        value = encode(default)
        json.dumps(value, allow_nan=False)
    except ValueError:
        return
    schema["default"] = value


def decode(value: Any, hint: Any, where: str) -> Any:
    """Return the Python value that a JSON value stands for, by its type hint.

    Raises:
        BadValue: It does not fit.
    """
    if type(hint) is not type or hint not in SCALARS:
        hint, _ = bare(hint)
        if is_any(hint):
            return value
    if hint is None or hint is NONE:
        return expect(value is None, value, where, "null")
    if isinstance(hint, type) and hint in SCALARS:
        return decode_scalar(value, hint, where)
    if isinstance(hint, type) and hint in TEXTS:
        expect(isinstance(value, str), value, where, "a string")
        try:
            return TEXTS[hint][1](value)
        except (ValueError, ArithmeticError):
            raise BadValue(f"{where}: {value!r:.80} is no {hint.__name__}") from None
    if is_bytes(hint) or is_file(hint):
        return decode_file(value, hint, where)
    origin, args = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin in UNIONS:
        return decode_union(value, args, where)
    if origin is typing.Literal:
        return decode_choice(value, args, where)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return decode_choice(value, hint, where)
    if origin is tuple:
        return decode_tuple(value, args, where)
    if origin in ARRAYS:
        expect(isinstance(value, list), value, where, "an array")
        each = args[0] if args else Any
        items = [decode(v, each, f"{where}[{n}]") for n, v in enumerate(value)]
        try:
            return ARRAYS[origin](items)
        except TypeError:
            raise BadValue(f"{where}: its items cannot be in a set") from None
    if origin in OBJECTS:
        expect(isinstance(value, dict), value, where, "an object")
        if len(args) != 2:
            return value
        return {
            decode_key(k, args[0], where): decode(v, args[1], f"{where}.{k}")
            for k, v in value.items()
        }
    if is_typed_dict(hint) or dataclasses.is_dataclass(hint):
        return decode_record(value, hint, where)
    if is_model(hint):
        return models().read(hint, value, where, BadValue)
    return value


def expect(fits: bool, value: Any, where: str, what: str) -> Any:
    if not fits:
        raise BadValue(f"{where}: expected {what}, got {type(value).__name__}")
    return value


def decode_scalar(value: Any, hint: Any, where: str) -> Any:
    if hint is bool:
        return expect(isinstance(value, bool), value, where, "a boolean")
    if hint is str:
        return expect(isinstance(value, str), value, where, "a string")
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    expect(number, value, where, "a number")
    if hint is float:
        try:
            return value if isinstance(value, ExactFloat) else float(value)
        except OverflowError:
            raise BadValue(f"{where}: the number is too large") from None
    # JSON does not tell 3 from 3.0.
    whole = isinstance(value, int) or value.is_integer()
    return int(expect(whole, value, where, "an integer"))


def decode_key(key: str, hint: Any, where: str) -> Any:
    if bare(hint)[0] is int:
        try:
            return int(key)
        except ValueError:
            raise BadValue(f"{where}: the name {key!r:.80} is no integer") from None
    return key if is_any(hint) else decode(key, hint, where)


def decode_union(value: Any, args: tuple[Any, ...], where: str) -> Any:
    errors = []
    # An exact fit first, or `Union[float, int]` would turn 3 into 3.0.
    for each in sorted(args, key=lambda hint: bare(hint)[0] is not type(value)):
        try:
            return decode(value, each, where)
        except BadValue as exc:
            errors.append(str(exc))
    raise BadValue(errors[0])


def decode_choice(value: Any, choices: Iterable[Any], where: str) -> Any:
    for each in choices:
        encoded = encode(each)
        if encoded == value and isinstance(encoded, bool) == isinstance(value, bool):
            return each
    known = ", ".join(repr(encode(each)) for each in choices)
    raise BadValue(f"{where}: {value!r:.80} is none of {known:.200}")


def decode_tuple(value: Any, args: tuple[Any, ...], where: str) -> tuple[Any, ...]:
    expect(isinstance(value, list), value, where, "an array")
    if not args or (len(args) == 2 and args[1] is Ellipsis):
        args = (args or (Any,))[:1] * len(value)
    if len(value) != len(args):
        raise BadValue(f"{where}: expected {len(args)} items, got {len(value)}")
    return tuple(decode(v, args[n], f"{where}[{n}]") for n, v in enumerate(value))


def decode_file(value: Any, hint: Any, where: str) -> Any:
    expect(isinstance(value, dict), value, where, "an object with bytes in data")
    expect(isinstance(value.get("data"), str), value, where, "bytes in data")
    try:
        data = base64.b64decode(value["data"], validate=True)
    except (binascii.Error, ValueError):
        raise BadValue(f"{where}: data is not base64") from None
    if is_bytes(hint):
        return hint(data)
    told = {"media_type": value.get("mediaType", BINARY), "name": value.get("name", "")}
    fields = fields_of(hint)
    return hint(data=data, **{key: told[key] for key in told if key in fields})


def decode_record(value: Any, hint: Any, where: str) -> Any:
    expect(isinstance(value, dict), value, where, "an object")
    fields = fields_of(hint)
    for name, (_, required, _) in fields.items():
        if required and name not in value:
            raise BadValue(f"{where}: {name} is missing")
    found = {}
    for name, item in value.items():
        if name in fields:
            found[name] = decode(item, fields[name][0], f"{where}.{name}")
        elif is_typed_dict(hint):
            found[name] = item
        else:
            raise BadValue(f"{where}: there is no {name!r:.80}")
    return found if is_typed_dict(hint) else hint(**found)


def encode(value: Any) -> Any:
    """Return a value as JSON has it.

    Raises:
        ValueError: JSON has no such value.
    """
    kind = type(value)
    if kind in SCALARS:
        return value
    if kind is dict:
        return {encode_key(key): encode(item) for key, item in value.items()}
    return encode_rare(value)


def encode_rare(value: Any) -> Any:
    """Return a value of a type that few values have, as `encode` does."""
    if isinstance(value, enum.Enum):
        return encode(value.value)
    if isinstance(value, (int, float, str)):
        return value
    if is_binary(value):
        return encode_file(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {field.name: encode(getattr(value, field.name)) for field in fields}
    if isinstance(value, collections.abc.Mapping):
        return {encode_key(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, collections.abc.Set):
        return sorted((encode(item) for item in value), key=repr)
    if isinstance(value, (*TEXTS, pathlib.PurePath)):
        return getattr(value, "isoformat", value.__str__)()
    if is_model(type(value)):
        return encode(models().written(value))
    raise ValueError(f"{type(value).__name__} is no JSON value")


def encode_file(value: Any) -> dict[str, str]:
    """Return bytes as JSON has them."""
    data = bytes(value if isinstance(value, BYTES) else value.data)
    media_type, name = getattr(value, "media_type", ""), getattr(value, "name", "")
    if not media_type:
        found = (kind for begin, kind in BEGINNINGS if data.startswith(begin))
        webp = data[:4] == b"RIFF" and data[8:12] == b"WEBP"
        media_type = "image/webp" if webp else next(found, BINARY)
    told = {"mediaType": str(media_type), "data": base64.b64encode(data).decode()}
    return {**told, "name": str(name)} if name else told


def encode_key(key: Any) -> str:
    if type(key) is str:
        return key
    key = encode(key)
    if isinstance(key, str):
        return key
    if isinstance(key, int) and not isinstance(key, bool):
        return str(key)
    raise ValueError(f"{type(key).__name__} is no name of a JSON object")


def is_context(parameter: inspect.Parameter, hints: dict[str, Any]) -> bool:
    """Tell whether a parameter wants the context of the call, by its type's name.

    The type is only named `Context`: a protocol of the owner's own, so that its code
    needs no import of ours. Without a type the parameter itself is called so.
    """
    hint = hints.get(parameter.name, parameter.annotation)
    if hint is parameter.empty:
        return parameter.name == "context" and parameter.default is parameter.empty
    args = typing.get_args(hint) if typing.get_origin(hint) in UNIONS else (hint,)
    names = [
        one if isinstance(one, str) else getattr(one, "__name__", "") for one in args
    ]
    found = [name.strip() for one in names for name in one.split("|")]
    return any(name.rpartition(".")[2] == "Context" for name in found)


class Context:
    """One call, as the function that it calls sees it.

    `ask` of an async function has to be awaited; that of another one waits itself.
    """

    def __init__(self, runner: Runner, number: int, told: dict[str, Any]) -> None:
        self._runner = runner
        self._number = number
        self._replies: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        self._ended = False
        self._room = WINDOW
        self._told = told
        self.gave = False
        "True when the caller was given a part of the result."

        self.live = bool(told.get("live"))
        self.joins = bool(told.get("joins")) or not self.live
        "True when somebody takes what comes before the answer."

        self.caller = str(told.get("caller", ""))
        "DID of the agent that calls."

        self.deadline = float(told.get("deadline", 0.0))
        "Seconds since 1970 after which nobody waits any more."

        self.key = str(told.get("key", ""))
        "Key of this start, by which a repeated one can be dropped; may be empty."

        folder = str(told.get("folder", ""))
        self.folder = pathlib.Path(folder) if folder else None
        "Folder of this call, for files; None in a call of one turn."

        self.files: list[pathlib.Path] = []
        "Files that came with the last answer to a question, in that folder."

    @property
    def cancelled(self) -> bool:
        """True when the caller has given up."""
        return self._ended

    def progress(
        self, progress: Any = None, total: Any = None, message: str = ""
    ) -> None:
        """Tell how far the work is; raises when the caller has given up."""
        self.check()
        told = {"progress": progress, "total": total, "message": str(message)}
        self._runner.send(self._number, {"progress": told})

    def ask(self, text: str, schema: Any = None, url: str = "") -> Any:
        """Ask the caller; return a text, or a value if a schema is given.

        The result is None when the caller does not want to answer.
        """
        return self._answer(self._ask(text, schema, url)())

    def reject(self, reason: str) -> typing.NoReturn:
        """End the function and hand the task back, which nothing was done of yet."""
        if self.gave:
            raise RuntimeError("what gave a part of its result cannot be handed back")
        raise TaskReturned(reason)

    def send_file(self, file: Any, name: str = "", media_type: str = "") -> Any:
        """Give the caller a file: a path in `folder`, bytes, or an open file."""
        self.wait_room()
        self.give_file(file, name, media_type)

    def files_in(self, value: Any) -> list[Any]:
        """Return the files that a value is for the caller: one, or a list.

        Bytes that fit a message are none: they go in it.
        """
        several = list(value) if isinstance(value, (list, tuple)) else [value]
        goes = self.folder is not None and not self.joins
        is_given = goes and all(map(is_large_or_path, several))
        return several if is_given else []

    def give_file(self, file: Any, name: str = "", media_type: str = "") -> None:
        """Tell the daemon of a file, whatever is on its way already."""
        self.check()
        if self.folder is None:
            raise Failure(400, "nobody takes files in a call of one turn")
        if is_file(type(file)):
            name, media_type = getattr(file, "name", ""), file.media_type
            file = file.data
        path = self._path_of(file, self.folder)
        told = {"path": path, "name": str(name), "mediaType": str(media_type)}
        self.gave = True
        self._runner.send(self._number, {"file": told})

    def _path_of(self, file: Any, folder: pathlib.Path) -> str:
        """Return the path of a file; bytes and what has no path are written first."""
        if isinstance(file, (str, pathlib.PurePath)):
            # A name alone is one in the folder of the call.
            return str(folder / file)
        if isinstance(file, io.IOBase):
            if not file.closed and file.writable():
                file.flush()
            name = getattr(file, "name", None)
            if isinstance(name, str):
                return os.path.abspath(name)
            file.seek(0)
            file = file.read()
        data = file.encode() if isinstance(file, str) else file
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        number, path = tempfile.mkstemp(prefix="content-", dir=folder)
        with open(number, "wb") as written:
            written.write(data)
        return path

    def _ask(self, text: str, schema: Any, url: str) -> Callable[[], dict[str, Any]]:
        self.check()
        if not self.live:
            raise Failure(400, "nobody answers questions in a call of one turn")
        told = {"text": str(text), "schema": schema, "url": str(url)}
        self._runner.send(self._number, {"ask": told})
        return self._wait_reply

    def _wait_reply(self) -> dict[str, Any]:
        with self._changed:
            self._changed.wait_for(lambda: self._replies or self._ended)
            self.check()
            return self._replies.pop(0)

    def _answer(self, reply: dict[str, Any]) -> Any:
        self.files = [pathlib.Path(one) for one in reply.get("files", ())]
        return reply.get("value") if reply.get("action") == "accept" else None

    def check(self) -> None:
        """Raise when the caller has given up."""
        if self._ended:
            raise CallCancelled("the caller has given up")

    def wait_room(self) -> None:
        """Wait until the caller takes more of what is streamed."""
        with self._changed:
            self._changed.wait_for(lambda: self._room > 0 or self._ended)
            self.check()
            self._room -= 1

    def heard(self, frame: dict[str, Any]) -> None:
        """Take a frame about this call."""
        with self._changed:
            self._room += int(frame.get("more", 0))
            if "reply" in frame:
                self._replies.append(frame["reply"])
            if "cancel" in frame:
                self._ended = True
            self._changed.notify_all()


class AsyncContext(Context):
    """The context of an async function; all of it happens in the main thread."""

    def __init__(self, runner: Runner, number: int, told: dict[str, Any]) -> None:
        super().__init__(runner, number, told)
        self._woken = asyncio.Event()

    async def ask(self, text: str, schema: Any = None, url: str = "") -> Any:
        """See `Context.ask`."""
        wait = self._ask(text, schema, url)
        await self._until(lambda: bool(self._replies))
        return self._answer(wait())

    async def send_file(self, file: Any, name: str = "", media_type: str = "") -> None:
        """See `Context.send_file`."""
        await self.room()
        self.give_file(file, name, media_type)

    async def room(self) -> None:
        """See `Context.wait_room`."""
        await self._until(lambda: self._room > 0)
        self.wait_room()

    def heard(self, frame: dict[str, Any]) -> None:
        """See `Context.heard`."""
        super().heard(frame)
        self._woken.set()

    async def _until(self, ready: Callable[[], bool]) -> None:
        while not (ready() or self._ended):
            self._woken.clear()
            await self._woken.wait()


class Function:
    """One function of the owner: its schemas, and how to call it from JSON."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self.call = function
        # Of a callable object the hints are on its `__call__`.
        source = function if inspect.isroutine(function) else type(function).__call__
        self.hints = hints_of(inspect.unwrap(source))
        self.parameters = list(inspect.signature(function).parameters.values())
        self.is_async = inspect.iscoroutinefunction(source)
        self.streams = inspect.isgeneratorfunction(source)
        self.streams_async = inspect.isasyncgenfunction(source)
        self.runs_async = self.is_async or self.streams_async
        self.context: inspect.Parameter | None = None
        self.takes_more = False
        self.by_name: dict[str, inspect.Parameter] = {}
        for parameter in self.parameters:
            if parameter.kind is parameter.VAR_KEYWORD:
                self.takes_more = True
            elif self.context is None and is_context(parameter, self.hints):
                self.context = parameter
            elif parameter.kind is not parameter.VAR_POSITIONAL:
                self.by_name[parameter.name] = parameter
        self.yields: Schema | None = None
        self.output_schema, self.wrap = self._output()

    def hint(self, parameter: inspect.Parameter) -> Any:
        return self.hints.get(parameter.name, Any)

    def describe(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "description": inspect.getdoc(self.call) or "",
            "input_schema": self._input(),
            "output_schema": self.output_schema,
            "updates": self.yields,
        }

    def _input(self) -> Schema:
        properties: dict[str, Schema] = {}
        required: list[str] = []
        for name, parameter in self.by_name.items():
            properties[name] = schema_of(self.hint(parameter))
            if parameter.default is parameter.empty:
                required.append(name)
            else:
                add_default(properties[name], parameter.default)
        schema: Schema = {"type": "object", "properties": properties}
        if required:
            schema["required"] = required
        if not self.takes_more:
            schema["additionalProperties"] = False
        return schema

    def _output(self) -> tuple[Schema, bool | None]:
        """Return the output schema and whether a result is wrapped: True, False or
        None when that depends on the value."""
        hint = self.hints.get("return", Any)
        if self.streams or self.streams_async:
            return self._joined_output(hint), True
        if is_any(hint):
            return {"type": "object"}, None
        schema = schema_of(hint, (RESULT,))
        if schema.get("type") == "object":
            return schema, False
        wrapped = {"type": "object", "properties": {"result": schema}}
        return {**wrapped, "required": ["result"]}, True

    def _joined_output(self, hint: Any) -> Schema:
        """Return the output schema of a call that gets all that is yielded at once."""
        args = typing.get_args(bare(hint)[0])
        self.yields = item = schema_of(args[0], (RESULT,)) if args else {}
        self.joins_text = item.get("type") == "string"
        joined = item if self.joins_text else {"type": "array", "items": item}
        if joined.get("items") == {}:
            del joined["items"]
        schema = {"type": "object", "properties": {"result": joined}}
        return {**schema, "required": ["result"]}

    def join(self, items: list[Any]) -> dict[str, Any]:
        """Return the output of a call that gets all that was yielded at once."""
        return {"result": "".join(items) if self.joins_text else items}

    def bind(self, arguments: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return positional and keyword arguments.

        Raises:
            BadValue: The arguments do not fit the parameters.
        """
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for name, parameter in self.by_name.items():
            if name not in arguments:
                if parameter.default is parameter.empty:
                    raise BadValue(f"{name} is missing")
                # What follows a positional gap cannot be given by position.
                if parameter.kind is parameter.POSITIONAL_ONLY:
                    positional.append(parameter.default)
                continue
            value = decode(arguments[name], self.hint(parameter), name)
            if parameter.kind is parameter.POSITIONAL_ONLY:
                positional.append(value)
            else:
                named[name] = value
        for name, value in arguments.items():
            if name not in self.by_name:
                if not self.takes_more:
                    raise BadValue(f"there is no parameter {name!r:.80}")
                named[name] = value
        return positional, named

    def give_context(
        self, context: Context, positional: list[Any], named: dict[str, Any]
    ) -> None:
        """Put the context among the arguments, if the function takes one."""
        wanted = self.context
        if wanted is not None and wanted.kind is wanted.POSITIONAL_ONLY:
            positional.insert(self.parameters.index(wanted), context)
        elif wanted is not None:
            named[wanted.name] = context

    def result(self, value: Any) -> dict[str, Any]:
        """Return the output for what the function returned."""
        encoded = encode(value)
        if self.wrap or (self.wrap is None and not isinstance(encoded, dict)):
            return {"result": encoded}
        if not isinstance(encoded, dict):
            kind = type(value).__name__
            raise ValueError(f"returned {kind}, but its return type is an object")
        return encoded


def load(target: str) -> list[Function]:
    """Return the functions that `MODULE:OBJECT`, `FILE.py:OBJECT` or `MODULE` names."""
    module_name, _, path = target.partition(":")
    if module_name.endswith(".py"):
        module = load_file(pathlib.Path(module_name))
    else:
        module = importlib.import_module(module_name)
    found: Any = module
    for part in path.split(".") if path else ():
        found = getattr(found, part)
    if inspect.isclass(found):
        raise TypeError(f"{path} is a class; name a function, or an instance of it")
    if inspect.ismodule(found):
        return module_functions(found)
    if inspect.isroutine(found):
        return [Function(path.rpartition(".")[2], found)]
    methods = [
        Function(name, getattr(found, name))
        for name in dir(type(found))
        # A static look, since a property would run the owner's code here.
        if name[0] != "_" and isinstance(getattr_static(found, name), METHODS)
    ]
    if methods:
        return methods
    if callable(found):
        return [Function(path.rpartition(".")[2], found)]
    raise TypeError(f"{path or module_name} is no function and has none")


def load_file(file: pathlib.Path) -> types.ModuleType:
    """Import a file as `python FILE` would find its neighbours."""
    file = file.resolve()
    sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot import {file}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module


def module_functions(module: types.ModuleType) -> list[Function]:
    """Return the public functions a module defines itself, or lists in `__all__`."""
    listed = getattr(module, "__all__", None)
    names = listed if listed is not None else [n for n in vars(module) if n[0] != "_"]
    found = [
        Function(name, vars(module)[name])
        for name in names
        if inspect.isfunction(vars(module).get(name))
        and (listed is not None or vars(module)[name].__module__ == module.__name__)
    ]
    if not found:
        raise TypeError(f"module {module.__name__} defines no public function")
    return found


class Runner:
    """Answers calls; plain functions run in threads, async ones in the main thread.

    The threads take turns at reading. One that read a plain call runs it itself, while
    another one reads on: so no call waits until a thread is started or woken up.
    """

    def __init__(self, channel: socket.socket, max_frame: int) -> None:
        self.channel = channel
        self.max_frame = max_frame
        self.functions: dict[str, Function] = {}
        self.loop = asyncio.new_event_loop()
        self.received = bytearray()
        self.reading = threading.Lock()
        self.counting = threading.Lock()
        self.waiting = 0
        self.writing = threading.Lock()
        self.running: dict[int, asyncio.Task[None]] = {}
        self.contexts: dict[int, Context] = {}

    def watch(self) -> None:
        """Start to read; from here on this process ends with the daemon."""
        threading.Thread(target=self.work, daemon=True).start()

    def serve(self, functions: list[Function]) -> None:
        """Answer until the daemon closes the channel."""
        self.functions = {function.name: function for function in functions}
        described = [function.describe() for function in functions]
        self.send(0, {"ready": described})
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def work(self) -> None:
        """Read when it is this thread's turn, and run the plain calls that come."""
        while self.take_turn():
            try:
                call = self.next_call()
                with self.counting:
                    alone = not self.waiting
                if alone:
                    # A function that hangs takes its thread with it, and no other.
                    # Where there can be no more threads, calls wait for this one.
                    with contextlib.suppress(RuntimeError):
                        self.watch()
            except BaseException:
                self.end()
                raise
            self.reading.release()
            # What a function sets in its context is gone with its call.
            contextvars.Context().run(self.run_plain, *call)
            # They may be long, and the next call of this thread may take long to come.
            del call

    def take_turn(self) -> bool:
        """Wait for the turn to read; False if enough threads wait for theirs."""
        with self.counting:
            if self.waiting >= MAX_WAITING:
                return False
            self.waiting += 1
        self.reading.acquire()
        with self.counting:
            self.waiting -= 1
        return True

    def next_call(self) -> tuple[int, Function, Context, Any]:
        """Read until a plain call comes; pass on everything else."""
        while True:
            found = self.receive()
            if found is None:
                self.end()
            number, frame = found
            function = self.functions.get(frame.get("call"))
            if function is not None and not function.runs_async:
                context = Context(self, number, frame.get("context", {}))
                self.contexts[number] = context
                return number, function, context, frame["arguments"]
            known = self.contexts.get(number)
            if known is None or isinstance(known, AsyncContext):
                self.loop.call_soon_threadsafe(self.handle, number, frame)
            else:
                known.heard(frame)

    def end(self) -> typing.NoReturn:
        """End this process: the daemon is gone.

        What hangs must not keep it; what is in order gets a moment for its `atexit`.
        """
        self.loop.call_soon_threadsafe(self.loop.stop)
        threading.Event().wait(1.0)
        os._exit(0)

    def receive(self) -> tuple[int, Any] | None:
        """Read one frame as its call id and its content, or None at the end."""
        header = self.receive_exactly(HEADER.size)
        if header is None:
            return None
        size, number = HEADER.unpack(header)
        data = self.receive_exactly(size)
        if data is None:
            return None
        text = data.decode()
        # What is long need not be there three times.
        del data
        return number, DECODER.decode(text)

    def receive_exactly(self, size: int) -> bytearray | None:
        received = self.received
        if size - len(received) > LONG:
            return self.receive_long(size)
        while len(received) < size:
            try:
                chunk = self.channel.recv(1 << 16)
            except OSError:
                return None
            if not chunk:
                return None
            received += chunk
        if len(received) == size:
            # All that there is, which may be long, and so is not copied.
            self.received = bytearray()
            return received
        taken = received[:size]
        del received[:size]
        return taken

    def receive_long(self, size: int) -> bytearray | None:
        """Receive so many bytes where they stay; see `receive_exactly`."""
        # Its whole room at once: one that grows is copied, and leaves holes behind.
        taken, at = bytearray(size), len(self.received)
        taken[:at] = self.received
        self.received = bytearray()
        with memoryview(taken) as view:
            while at < size:
                try:
                    count = self.channel.recv_into(view[at:])
                except OSError:
                    return None
                if not count:
                    return None
                at += count
        return taken

    def handle(self, number: int, frame: dict[str, Any]) -> None:
        """Act on a frame about a call of an async function, in the main thread."""
        if "call" not in frame:
            context = self.contexts.get(number)
            if context is not None:
                context.heard(frame)
            task = self.running.get(number)
            if task is not None and "cancel" in frame:
                task.cancel()
            return
        function = self.functions[frame["call"]]
        context = AsyncContext(self, number, frame.get("context", {}))
        bound = self.bound(number, function, context, frame["arguments"])
        if bound is not None:
            self.contexts[number] = context
            work = self.run_async(number, function, context, *bound)
            self.running[number] = self.loop.create_task(work)

    def bound(
        self, number: int, function: Function, context: Context, arguments: Any
    ) -> tuple[list[Any], dict[str, Any]] | None:
        """Return what to call a function with, or None if the call has failed."""
        try:
            positional, named = function.bind(arguments)
        except BadValue as exc:
            self.fail(number, Failure(400, str(exc), ran=False))
            return None
        except Exception as exc:  # noqa: BLE001 -- the owner's own types may raise
            self.fail(number, exc)
            return None
        function.give_context(context, positional, named)
        return positional, named

    async def run_async(
        self,
        number: int,
        function: Function,
        context: Any,
        positional: list[Any],
        named: Any,
    ) -> None:
        try:
            if function.streams_async:
                items: list[Any] = []
                async for item in function.call(*positional, **named):
                    if context.live:
                        await context.room()
                    self.update(number, context, items, item)
                self.joined(number, function, context, items)
            else:
                value = await function.call(*positional, **named)
                self.answer(number, function, context, value)
        except asyncio.CancelledError:
            self.fail(number, Failure(504, "cancelled"))
        except (Exception, TaskReturned) as exc:  # noqa: BLE001 -- whatever it raises
            self.fail(number, exc)
        finally:
            self.running.pop(number, None)
            self.contexts.pop(number, None)

    def run_plain(
        self, number: int, function: Function, context: Context, arguments: Any
    ) -> None:
        try:
            bound = self.bound(number, function, context, arguments)
            if bound is None:
                return
            positional, named = bound
            value = function.call(*positional, **named)
            if function.streams:
                with contextlib.closing(value):
                    self.stream(number, function, context, value)
            else:
                self.answer(number, function, context, value)
        except BaseException as exc:  # noqa: BLE001 -- also sys.exit() in a thread
            self.fail(number, exc)
        finally:
            self.contexts.pop(number, None)

    def stream(
        self, number: int, function: Function, context: Context, values: Any
    ) -> None:
        """Pass on what a generator yields, at the pace at which it is taken."""
        items: list[Any] = []
        for item in values:
            if context.live:
                context.wait_room()
            context.check()
            self.update(number, context, items, item)
        self.joined(number, function, context, items)

    def update(
        self, number: int, context: Context, items: list[Any], item: Any
    ) -> None:
        """Pass on what was yielded, or keep it for the end."""
        files = context.files_in(item)
        for file in files:
            context.give_file(file)
        if files:
            return
        encoded = encode(item)
        if context.live:
            # Bytes are a part of their own, and not an object that looks like one.
            kind = (
                "file" if isinstance(item, BYTES) or is_file(type(item)) else "update"
            )
            context.gave = True
            self.send(number, {kind: encoded})
        if context.joins:
            items.append(encoded)

    def joined(
        self, number: int, function: Function, context: Context, items: list[Any]
    ) -> None:
        """End a call that yielded its results."""
        output = function.join(items) if context.joins else {}
        self.send(number, {"output": output})

    def answer(
        self, number: int, function: Function, context: Context, value: Any
    ) -> None:
        try:
            # Only where somebody takes what comes before the answer.
            takes = context.live and not context.joins
            if takes and (is_binary(value) or context.files_in(value)):
                self.update(number, context, [], value)
                self.send(number, {"output": {}})
            else:
                self.send(number, {"output": function.result(value)})
        except RecursionError:
            words = "the result is nested too deeply"
            self.fail(number, Failure(500, words, ran=True))
        except (ValueError, TypeError) as exc:
            self.fail(number, exc)

    def fail(self, number: int, error: BaseException) -> None:
        """Tell of a failed call.

        An exception whose `caller_message` is a string is a deliberate error: these
        words go to the caller, and no others do unless the owner says so.
        """
        rejected = isinstance(error, TaskReturned)
        code = 409 if rejected else getattr(error, "code", None)
        words = str(error) if rejected else getattr(error, "caller_message", None)
        meant = isinstance(words, str)
        if not isinstance(code, int) or isinstance(code, bool):
            # Most documents have no place for a code in words: it precedes the words.
            if isinstance(words, str) and isinstance(code, str) and code not in words:
                words = f"{code}: {words}"
            code = 500
        if not isinstance(words, str):
            words = f"{type(error).__name__}: {error}"
        ran = not isinstance(error, Failure) or error.ran
        text = words.encode("utf-8", "replace").decode()[:MAX_MESSAGE]
        told = {"code": code, "message": text, "meant": meant, "ran": ran}
        self.send(number, {"error": {**told, "rejected": rejected}})

    def send(self, number: int, frame: dict[str, Any]) -> None:
        """Write one frame.

        Raises:
            ValueError: It is no JSON or too large; nothing was sent.
        """
        data = written(frame)
        if len(data) > self.max_frame:
            raise BadValue(f"the result is over {self.max_frame} bytes")
        with self.writing:
            send(self.channel, number, data)


def send(channel: socket.socket, number: int, data: bytes) -> None:
    """Write one frame; without a daemon there is nothing left to do."""
    try:
        header = HEADER.pack(len(data), number)
        if len(data) > LONG:
            channel.sendall(header)
            channel.sendall(data)
        else:
            channel.sendall(header + data)
    except OSError:
        os._exit(0)


def main() -> None:
    """Load the target, say what it can do, and serve."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    channel.set_inheritable(False)
    max_frame, target = int(sys.argv[2]), sys.argv[3]
    del sys.argv[1:]
    sys.path.insert(0, os.getcwd())
    runner = Runner(channel, max_frame)
    # Before the owner's module is imported, for that may take for ever.
    runner.watch()
    try:
        functions = load(target)
    except BaseException as exc:
        # Also `sys.exit()` while the owner's module is imported.
        message = f"{type(exc).__name__}: {exc}"[:MAX_MESSAGE]
        data = json.dumps({"failed": message.encode("utf-8", "replace").decode()})
        send(channel, 0, data.encode())
        raise
    runner.serve(functions)


if __name__ == "__main__":
    main()
