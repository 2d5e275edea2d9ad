"""Runs a snippet with and without the language layer, in this process.

The snippets are our own; whatever comes from elsewhere runs in a worker.
"""

from __future__ import annotations

import contextlib
import io
import sys
from types import ModuleType
from typing import Any

from sandbox.errors import Finding
from sandbox.language.facades.log import CappedLog
from sandbox.language.policy import compile_half
from sandbox.worker.worker import fresh_globals

_PLAIN_NAME = "plain_snippet"


def findings_of(source: str) -> list[Finding]:
    """Return what the layer refuses in a source."""
    return compile_half(source)[1]


def reasons_of(source: str) -> list[str]:
    """Return the reasons of all findings."""
    return [finding.reason for finding in findings_of(source)]


def fenced(source: str, log: CappedLog | None = None) -> dict[str, Any]:
    """Run a source with the language layer and return its namespace."""
    code, findings = compile_half(source)
    assert code is not None, findings
    namespace = fresh_globals(log)
    exec(code, namespace)
    return namespace


def outcome_fenced(source: str) -> tuple[str, str]:
    """Return `result` of a source, or its exception, and what it printed."""
    log = CappedLog()
    try:
        text = repr(fenced(source, log)["result"])
    except Exception as exc:  # noqa: BLE001  # compared with the plain one's
        text = f"{type(exc).__name__}: {exc}"
    return text, log.take()


def outcome_plain(source: str) -> tuple[str, str]:
    """Return the same without the language layer."""
    # Dataclasses look the module of a class up by its name.
    module = ModuleType(_PLAIN_NAME)
    sys.modules[_PLAIN_NAME] = module
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(source, "<plain>", "exec", dont_inherit=True), module.__dict__)
        text = repr(module.__dict__["result"])
    except Exception as exc:  # noqa: BLE001  # compared with the fenced one's
        text = f"{type(exc).__name__}: {exc}"
    finally:
        del sys.modules[_PLAIN_NAME]
    return text, printed.getvalue()
