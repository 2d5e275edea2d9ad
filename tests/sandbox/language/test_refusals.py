"""Forbidden code of a half is refused by line, with advice on what to use instead."""

from __future__ import annotations

import json
import sys

import pytest

from sandbox.errors import Finding
from sandbox.language.facades.log import MAX_LOG, CappedLog
from sandbox.language.policy import MAX_SOURCE, compile_half
from sandbox.worker.worker import _Worker
from tests.sandbox.language.loaded import (
    fenced,
    findings_of,
    outcome_fenced,
    reasons_of,
)

REFUSED = {
    "import os": "os may not be imported; a module gets its data as arguments",
    "import os.path as p": "os.path may not be imported; a module gets its data",
    "from os import getenv": "os may not be imported",
    "import urllib.request": "urllib.request may not be imported; reach the outside",
    "from urllib import request": "urllib.request is not available",
    "from . import x": ". may not be imported",
    "from .json import x": ".json may not be imported",
    "import json.decoder": "json.decoder may not be imported",
    "from json import decoder": "json.decoder is not available",
    "from json import *": "name what you need of json instead of *",
    "import random": "random may not be imported; use secrets",
    "import nothing_known": "nothing_known may not be imported",
    "import time; time.sleep(1)": "time.sleep is not available; a module cannot wait",
    "from time import sleep": "time.sleep is not available; a module cannot wait",
    "import string; string.Formatter()": "string.Formatter is not available; use str",
    "import urllib.parse; urllib.parse.sys": "urllib.parse.sys is not available",
    "import html; html._re": "html._re is not available",
    "import xml.etree.ElementTree as E; E.parse('x')": "use fromstring",
    "from operator import attrgetter": "operator.attrgetter is not available; use a",
    "open('x')": "open is not available; a module gets its data as arguments",
    "x = [eval]": "eval is not available; parse the text with json.loads",
    "exec('x')": "exec is not available",
    "globals()": "globals is not available; use a dict of your own",
    "vars": "vars is not available; use dataclasses.asdict",
    "input()": "input is not available",
    "raise SystemExit": "SystemExit is not available; return, or raise ValueError",
    "__import__('os')": "__import__ is not available; use an import statement",
    "__builtins__": "__builtins__ is not available",
    "x = __build_class__": "__build_class__ is not available",
    "x = _getattr_": "_getattr_ is not available",
    "_getattr_ = 1": "_getattr_ may not be bound",
    "def _write_(x): return x": "_write_ may not be bound",
    "def f(_getattr_): pass": "_getattr_ may not be bound",
    "def f(*, __class__): pass": "__class__ may not be bound",
    "lambda _write_: 1": "_write_ may not be bound",
    "class _hold_: pass": "_hold_ may not be bound",
    "import json as _getattr_": "_getattr_ may not be bound",
    "from json import loads as _write_": "_write_ may not be bound",
    "for _write_ in []: pass": "_write_ may not be bound",
    "[0 for _write_ in []]": "_write_ may not be bound",
    "(_write_ := 1)": "_write_ may not be bound",
    "with x as _write_: pass": "_write_ may not be bound",
    "try: pass\nexcept E as _write_: pass": "_write_ may not be bound",
    "match 1:\n case _write_: pass": "_write_ may not be bound",
    "match 1:\n case [*_write_]: pass": "_write_ may not be bound",
    "match 1:\n case {**_write_}: pass": "_write_ may not be bound",
    "match 1:\n case int() as _write_: pass": "_write_ may not be bound",
    "global _write_": "_write_ may not be bound",
    "def f():\n def g():\n  nonlocal __class__": "__class__ may not be bound",
    "del _write_": "_write_ may not be bound",
    "__name__ = 'os'": "__name__ may not be bound",
    "private__x = 1": "names with this beginning are reserved",
    "x.private__x": "names with this beginning are reserved",
    "x.__dict__": "__dict__ is not available; use dataclasses.asdict",
    "x.__globals__": "__globals__ is not available",
    "x.__subclasses__()": "__subclasses__ is not available",
    "x.__class__ = 1": "__class__ is not available",
    "x.__init__ = 1": "__init__ is not available",
    "del x.__eq__": "__eq__ is not available",
    "x._asdict_": "_asdict_ is not available",
    "x.gi_frame": "gi_frame is not available",
    "x.f_globals": "f_globals is not available",
    "x.tb_frame": "tb_frame is not available",
    "x.cr_frame": "cr_frame is not available",
    "x.ag_frame": "ag_frame is not available",
    "x.func_globals": "func_globals is not available",
    "int.mro()": "mro is not available; use isinstance",
    "x.fget": "fget is not available",
    "x.__ｃlass_getitem__": "__class_getitem__ is not available",
    "x.ｇi_frame": "gi_frame is not available",
    "ｅval('1')": "eval is not available",
    "class C:\n def __getattr__(self, n): pass": "__getattr__ is not available",
    "class C:\n def __getattribute__(self, n): pass": "__getattribute__ is not",
    "class C:\n def __del__(self): pass": "__del__ is not available; use a with",
    "class C:\n def __format__(self, s): pass": "__format__ is not available",
    "class C:\n def __init_subclass__(cls): pass": "__init_subclass__ is not",
    "class C:\n def __reduce__(self): pass": "__reduce__ is not available",
    "class C:\n __module__ = 'os'": "__module__ is not available; use __name__",
    "class C:\n __class__ = int": "__class__ is not available",
    "class C:\n __getattr__ = None": "__getattr__ is not available",
    "class C:\n gi_frame: int": "gi_frame is not available",
    "class C:\n __slots__ = ('__class__',)": "__slots__ takes a tuple of literal",
    "class C:\n __slots__ = tuple('ab')": "__slots__ takes a tuple of literal",
    "class C:\n __slots__, x = ('a',), 1": "__slots__ is not available",
    "class C:\n __slots__: tuple = ('a',)": "__slots__ is not available",
    "class C:\n for __slots__ in [('a',)]: pass": "__slots__ is not available",
    "class C(metaclass=M): pass": "metaclass is not available in a class",
    "class C(**k): pass": "** is not available in a class",
    "match x:\n case Point(x=1): pass": "write `case Point():` and read them",
    "match x:\n case Point(1): pass": "a class pattern reads no attributes here",
    "match x:\n case str(format=f): pass": "a class pattern reads no attributes",
    "x.format += 1": "write `x.format = x.format ...` instead",
    "async def f(): pass": "async is not available; write plain functions",
    "def f():\n  return [x async for x in y]": "async is not available",
    "x = (": "this is no Python: '(' was never closed",
    "return 1": "this is no Python: 'return' outside function",
    "x\0": "zero byte",
}


@pytest.mark.parametrize("source", REFUSED)
def test_a_source_is_refused_with_what_to_use_instead(source: str) -> None:
    code, findings = compile_half(source)
    assert code is None
    assert any(REFUSED[source] in finding.reason for finding in findings), findings


def test_a_finding_has_its_line_and_excerpt() -> None:
    source = "import json\n\n\ndef f(x):\n    return x.__dict__  # all of it\n"
    reason = "__dict__ is not available; use dataclasses.asdict or name the attributes"
    expected = Finding(5, reason, "return x.__dict__  # all of it")
    assert findings_of(source) == [expected]


def test_all_findings_come_at_once_and_by_line() -> None:
    source = "def f(x):\n    return x.__dict__\nimport os\nopen('x')\nx = 1"
    assert [finding.line for finding in findings_of(source)] == [2, 3, 4]


def test_findings_are_not_more_than_twenty() -> None:
    assert len(findings_of("import os\n" * 50)) == 20


def test_a_syntax_error_has_its_line() -> None:
    assert findings_of("x = 1\ny = = 2\n")[0].line == 2


def test_a_source_may_have_its_limit_of_bytes_and_no_more() -> None:
    assert findings_of("#" * MAX_SOURCE) == []
    assert "at most 65536" in reasons_of("#" * (MAX_SOURCE + 1))[0]


@pytest.mark.parametrize(
    "source",
    [
        "x = " + "(" * 5_000 + ")" * 5_000,
        "x = a" + ".b" * 20_000,
        "x = " + "-" * 30_000 + "1",
        "x = " + " + ".join("a" * 10_000),
        "x = '\ud800'",
    ],
)
def test_a_source_that_no_compiler_takes_is_refused(source: str) -> None:
    code, findings = compile_half(source)
    assert code is None
    assert findings


def test_a_bound_name_of_a_builtin_is_the_halfs_own() -> None:
    assert findings_of("def open(x): return x\nresult = open(1)") == []
    assert findings_of("import time\ndef f(time): return time.sleep") == []


RUN_TIME = {
    "getattr(1, '__class' + '_getitem__')": "AttributeError: __class_getitem__ is not",
    "getattr((x for x in []), 'gi_' + 'frame')": "AttributeError: gi_frame is not",
    "type('X', (), {})": "TypeError: type() takes 1 argument; write a class statement",
    "setattr(int, 'x', 1)": "TypeError: attributes of int may not be set",
    "setattr(len, 'x', 1)": "TypeError: attributes of a builtin_function_or_method",
    "'{0.real}'.format(1)": "AttributeError: format looks up no attribute (real); use",
    "getattr(object(), 'private__x')": "AttributeError: private__x: names with this",
    "missing_name": "NameError: name 'missing_name' is not defined",
}


@pytest.mark.parametrize("expression", RUN_TIME)
def test_what_a_guard_refuses_says_what_to_use_instead(expression: str) -> None:
    text, _ = outcome_fenced(f"result = {expression}")
    assert text.startswith(RUN_TIME[expression])


def test_an_attribute_that_may_not_be_read_is_absent() -> None:
    source = "result = hasattr(len, '__self__'), getattr(len, '__self__', 'absent')"
    assert fenced(source)["result"] == (False, "absent")


def test_print_and_logging_go_to_the_log() -> None:
    log = CappedLog()
    source = (
        "import logging\nlogging.getLogger('a').warning('%s of %d', 'one', 2)\n"
        "logging.info('x')\nprint('y', end='')"
    )
    fenced(source, log)
    assert log.take() == "WARNING:a:one of 2\nINFO:root:x\ny"
    assert log.take() == ""


def test_the_log_is_cut_with_a_note() -> None:
    log = CappedLog()
    fenced("for i in range(100): print('中' * 1000)", log)
    text = log.take()
    assert len(text.encode()) <= MAX_LOG
    assert text.endswith("[the log was cut here]\n")


def _reply(worker: _Worker, **request: object) -> dict[str, object]:
    return worker.answer({"id": 1, **request})


def test_a_worker_reports_all_findings_as_plain_values() -> None:
    reply = _reply(_Worker(), op="load", source="x = 1\nimport os\nopen('x')\n")
    assert json.loads(json.dumps(reply))["failed"] == {
        "outcome": "rejected",
        "line": 2,
        "reason": "line 2: os may not be imported; a module gets its data as arguments;"
        " line 3: open is not available; a module gets its data as arguments",
        "findings": [
            {
                "line": 2,
                "reason": "os may not be imported; a module gets its data as arguments",
                "source": "import os",
            },
            {
                "line": 3,
                "reason": "open is not available; a module gets its data as arguments",
                "source": "open('x')",
            },
        ],
    }


def test_a_worker_gives_the_log_of_each_request_once() -> None:
    worker = _Worker()
    source = "print('loaded')\ndef f(x):\n    print(x)\n    return x\n"
    assert _reply(worker, op="load", source=source)["log"] == "loaded\n"
    reply = _reply(worker, op="call", function="f", args=["called"])
    assert reply == {"id": 1, "value": "called", "log": "called\n"}


def test_a_worker_names_the_functions_of_a_half_only() -> None:
    source = "def a(): pass\nclass B: pass\nc = 1\n"
    assert _reply(_Worker(), op="load", source=source)["value"] == ["B", "a"]


def test_a_worker_without_the_layer_gives_everything_and_the_same_names() -> None:
    worker = _Worker()
    source = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "from typing import ClassVar\nimport os\n"
        "@dataclass\nclass C:\n    x: int\n    y: ClassVar[int] = 0\n"
        "def f(): return [os.sep, repr(C(1)), type(call('a', 1)).__name__]\n"
    )
    assert "failed" not in _reply(worker, op="load", source=source, language=False)
    reply = _reply(worker, op="call", function="f", args=[])
    assert reply["value"] == ["/", "C(x=1)", "CapabilityCall"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise ValueError('v')", "ValueError: v"),
        ("class E(BaseException): pass\n    raise E('b')", "E: b"),
        ("raise GeneratorExit('g')", "GeneratorExit: g"),
        ("raise CapabilityError(7, 'm')", "CapabilityError 7: m"),
        (
            "class E(Exception):\n"
            "        def __str__(self): raise ValueError('x')\n    raise E",
            "E: its text cannot be made",
        ),
        (
            "class C:\n        def _go(self, x): pass\n    C()._go()",
            "TypeError: f.<locals>.C._go() missing 1 required positional argument: 'x'",
        ),
        (
            "class C: pass\n    C()._x",
            "AttributeError: 'C' object has no attribute '_x'",
        ),
    ],
)
def test_whatever_a_half_raises_becomes_an_error_with_a_line(
    body: str, reason: str
) -> None:
    worker = _Worker()
    _reply(worker, op="load", source=f"def f():\n    {body}\n")
    failed = _reply(worker, op="call", function="f", args=[])["failed"]
    assert isinstance(failed, dict)
    assert (failed["outcome"], failed["reason"]) == ("error", reason)
    assert failed["line"] >= 2


@pytest.mark.skipif(sys.version_info < (3, 12), reason="syntax of Python 3.12")
def test_type_parameters_and_aliases_are_stripped() -> None:
    source = (
        "type Pair[T] = tuple[T, T]\n"
        "def first[T: int](pair: Pair[T]) -> T: return pair[0]\n"
        "class Box[T]:\n    def __init__(self, x: T) -> None: self.x = x\n"
        "result = first((1, 2)), Box(3).x\n"
    )
    assert fenced(source)["result"] == (1, 3)
    assert reasons_of("def f[_write_](): pass") == [
        "_write_ may not be bound; use a name without underscores"
    ]
