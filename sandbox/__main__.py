"""`python -m sandbox run FILE FUNCTION JSON`: runs a function in a locked worker.

The worker is locked as the daemon's are, so anybody can try to escape from it. A JSON
array holds the function's arguments; any other value is the only argument. Bytes are
written as `{"base64": "…"}`, in arguments and results.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import binascii
import json
import sys
from pathlib import Path
from typing import Any

from sandbox.errors import CapabilityFailure, SandboxError
from sandbox.pool.config import SandboxConfig
from sandbox.pool.pool import Sandbox

OK, FAILED, USAGE = 0, 1, 2
"Exit codes: a value, another outcome, invalid arguments."


class _UsageError(Exception):
    """Invalid arguments on the command line."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        source = Path(options.file).read_text(encoding="utf-8")
        given = _decoded(_read_json(options.json, "the arguments"))
        answers = dict(_answer(text) for text in options.answer)
    except (OSError, UnicodeDecodeError, _UsageError) as exc:
        print(f"sandbox: {exc}", file=sys.stderr)
        return USAGE
    config = SandboxConfig(
        warm_workers=0,
        language_layer=options.language_layer == "on",
        required_level=options.level,
    )
    args = given if isinstance(given, list) else [given]
    report = asyncio.run(
        _run(source, options.function, args, answers, options.deadline, config)
    )
    print(json.dumps(report, ensure_ascii=False))
    return OK if report["outcome"] == "ok" else FAILED


async def _run(
    source: str,
    function: str,
    args: list[Any],
    answers: dict[str, Any],
    deadline: float,
    config: SandboxConfig,
) -> dict[str, Any]:
    """Return the outcome of one call."""

    async def on_call(name: str, params: Any) -> Any:
        if name not in answers:
            raise CapabilityFailure(404, f"no --answer for {name[:100]}")
        return answers[name]

    sandbox = Sandbox(config)
    try:
        await sandbox.start()
        # A file of unknown origin gets no more trust than a model's code.
        module = await sandbox.load("run", source, origin="model")
        value = await module.run(function, *args, on_call=on_call, deadline=deadline)
        report = {"outcome": "ok", "value": _encoded(value)}
    except SandboxError as exc:
        exc.protocol = None
        report = exc.report()
    finally:
        await sandbox.close()
    log = sandbox.runs("run").log
    return {**report, "log": log} if log else report


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sandbox", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="run")
    run = commands.add_parser("run", help="run one function of a file in a worker")
    run.add_argument("file", metavar="FILE", help="a Python source")
    run.add_argument("function", metavar="FUNCTION")
    run.add_argument("json", metavar="JSON", nargs="?", default="[]")
    run.add_argument(
        "--answer",
        metavar="NAME=JSON",
        action="append",
        default=[],
        help="what a capability call gives; others fail with 404",
    )
    run.add_argument("--deadline", metavar="SECONDS", type=float, default=2.0)
    run.add_argument(
        "--level",
        choices=["full", "reduced"],
        default="full",
        help="least isolation at which it runs",
    )
    run.add_argument(
        "--language-layer",
        choices=["on", "off"],
        default="on",
        help="off is for tests: the kernel's layers alone",
    )
    return parser


def _answer(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator:
        raise _UsageError(f"--answer {text}: write NAME=JSON")
    return name, _decoded(_read_json(value, f"--answer {name}"))


def _read_json(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise _UsageError(f"{what}: nested too deeply") from None
    except ValueError as exc:
        raise _UsageError(f"{what}: not JSON: {exc}") from None


def _decoded(value: Any) -> Any:
    """Return `value`, with each `{"base64": "…"}` in it converted to bytes."""
    if isinstance(value, dict):
        if value.keys() == {"base64"} and isinstance(value["base64"], str):
            try:
                return base64.b64decode(value["base64"], validate=True)
            except binascii.Error as exc:
                raise _UsageError(f"base64: {exc}") from None
        return {name: _decoded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    return value


def _encoded(value: Any) -> Any:
    """Return `value`, with bytes in it converted to `{"base64": "…"}`."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, dict):
        return {name: _encoded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_encoded(item) for item in value]
    return value


if __name__ == "__main__":
    sys.exit(main())
