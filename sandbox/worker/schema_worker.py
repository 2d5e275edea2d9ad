"""The worker that checks schemas and values; it never loads a module."""

from __future__ import annotations

import hashlib
import itertools
import json
import socket
from collections import OrderedDict
from typing import Any

from jsonschema import (
    Draft202012Validator,
    FormatChecker,
    _keywords,
    _legacy_keywords,
    _utils,
)
from jsonschema.exceptions import SchemaError
from referencing import Registry
from referencing.exceptions import Unresolvable

from sandbox.patterns.engine import compiled, matches
from sandbox.patterns.schemas import pattern_faults
from sandbox.patterns.translation import PatternError
from sandbox.plain_schemas import parse_strict
from sandbox.worker.channel import serve_frames
from sandbox.worker.findings import words_of

MAX_COMPILED = 256
"Compiled validators that are kept."

MAX_COMPILED_SIZE = 2 * 1024 * 1024
"JSON of the schemas of all compiled validators that are kept, in bytes."

MAX_FINDINGS = 10
"Findings that are reported for one value."

MAX_FINDING = 300
"Longest finding, in characters."

_compiled: OrderedDict[str, tuple[Draft202012Validator, int]] = OrderedDict()


class _LinearEngine:
    """Takes the place of the module `re` where the library searches."""

    @staticmethod
    def search(pattern: str, text: str) -> bool:
        """See `matches`."""
        return matches(pattern, text)


# The library has no option for another engine, and four keywords search: `pattern`,
# `patternProperties`, `additionalProperties` and `unevaluatedProperties`; a `$schema`
# inside a schema brings those of an older draft. This process only checks schemas.
_keywords.re = _legacy_keywords.re = _utils.re = _LinearEngine


def serve_schemas(channel: socket.socket, max_frame: int) -> None:
    """Answer requests until the daemon closes the channel."""
    serve_frames(channel, _answer, max_frame=max_frame)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        findings = _judge(request)
    except RecursionError:
        findings = ["the schema or the value is nested too deeply"]
    except MemoryError:
        findings = ["the check ran out of memory"]
    except PatternError as exc:
        findings = [f"the schema cannot be used: {exc}"]
    except Unresolvable:
        findings = ["the schema refers to something that is not in it"]
    except Exception:  # noqa: BLE001  # reported, two lines below
        # The schema is hostile: any error in the library is the schema's fault.
        findings = ["the schema cannot be used"]
    return {"id": request["id"], "value": [_cut(f) for f in findings[:MAX_FINDINGS]]}


def _judge(request: dict[str, Any]) -> list[str]:
    schema = request["schema"]
    if request["op"] == "check_schema":
        try:
            # No formats: one of them is `regex`, which Python's own engine would judge.
            Draft202012Validator.check_schema(schema, format_checker=FormatChecker(()))
        except SchemaError as exc:
            return [words_of(exc)]
        faults = pattern_faults(schema, check=compiled)
        return list(itertools.islice(faults, MAX_FINDINGS))
    if request["op"] == "validate_json":
        try:
            value = parse_strict(request["data"])
        except RecursionError:
            return ["not JSON: it is nested too deeply"]
        except UnicodeDecodeError:
            return ["not JSON: the bytes are not UTF-8"]
        except ValueError as exc:
            return [f"not JSON: {exc}"]
    else:
        value = request["data"]
    found = []
    for error in _validator(schema).iter_errors(value):
        found.append(words_of(error))
        if len(found) >= MAX_FINDINGS:
            break
    return found


def _validator(schema: Any) -> Draft202012Validator:
    text = json.dumps(schema, sort_keys=True).encode()
    digest = hashlib.sha256(text).hexdigest()
    if digest not in _compiled:
        # The default registry would fetch remote references.
        _compiled[digest] = Draft202012Validator(schema, registry=Registry()), len(text)
        # One peer's large schemas must not fill the memory of the next one's check.
        while len(_compiled) > MAX_COMPILED or (
            len(_compiled) > 1
            and sum(size for _, size in _compiled.values()) > MAX_COMPILED_SIZE
        ):
            _compiled.popitem(last=False)
    _compiled.move_to_end(digest)
    return _compiled[digest][0]


def _cut(text: str) -> str:
    clean = text[:MAX_FINDING].encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c.isprintable() else " " for c in clean)
