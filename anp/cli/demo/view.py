"""Prints the demo for people while it runs."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from anp.cli.demo.needs import DemoNeed
from anp.cli.demo.observer import DemoObserver
from anp.cli.demo.stage import DemoPeer
from anp.cli.demo.strangers import Stranger
from anp.cli.output import visible
from anp.errors import CallError, ErrorKind

# The programs of the demo: beside it in a wheel, or in a checkout.


def find_example(name: str, package: Path | None = None) -> Path:
    """Return an example: beside us in a wheel, in `examples/` of a checkout.

    Raises:
        CallError: LOCAL_RESOURCE, it is in neither place.
    """
    here = package or Path(__file__).resolve().parent
    for path in (here / "examples" / name, here.parents[2] / "examples" / name):
        if path.is_file():
            return path
    raise CallError(
        ErrorKind.LOCAL_RESOURCE,
        f"demo: examples/{name} is missing; install anpd again",
    )


STEPS = 7
"Steps of the demo."

MAX_TEXT_LINES = 24
"Lines of the protocol text that are shown."


class Timeline(DemoObserver):
    """Lines on the terminal; without colours where NO_COLOR or a pipe says so.

    Args:
        model: Name of the language model that helps; None if there is none.
    """

    def __init__(self, model: str | None = None) -> None:
        self._model = model
        self._number = 0
        self._began = time.monotonic()
        self._line("two agents who never met talk on this machine", style="bold")
        helps = (
            f"the model {visible(model)} helps where schemas do not decide; its budget "
            "is yours"
            if model
            else "no language model is set (llm.model): rules do what schemas alone "
            "decide, and it costs nothing"
        )
        self._line(helps, style="dim")

    @contextmanager
    def step(self, title: str, about: float) -> Iterator[None]:
        """Show what comes and how long it takes, and afterwards how long it took."""
        self._number += 1
        self._line()
        head = _styled(f"{self._number}/{STEPS}  {title}", "bold")
        self._line(f"{head}  (about {about:.0f} s)")
        began = time.monotonic()
        yield
        self._line(f"     took {time.monotonic() - began:.1f} s", style="dim")

    def attached(self, name: str, found: Sequence[str]) -> None:
        """Show what the shop offers."""
        tools = ", ".join(visible(tool.partition(".")[2]) for tool in found)
        kind = "an MCP server" if name == "time" else "Python functions"
        self._row(name, f"{tools}  ({kind})")

    def up(self, peers: Sequence[DemoPeer]) -> None:
        """Show who is there."""
        for peer in peers:
            self._row(peer["name"], f"{peer['url']}  {peer['did']}", style="cyan")

    def differs(self, need: DemoNeed) -> None:
        """Show what the two call the same things."""
        data, wanted = (", ".join(one or ()) for one in (need.input, need.output))
        self._row("wanted", f"{data} -> {wanted}")
        self._row("offered", need.offered)

    def called(self, result: Mapping[str, Any]) -> None:
        """Show one call: the need, how it was agreed, the result, how long."""
        if result["run"] == 1:
            for step in result["timeline"]:
                self._row("", f"{step['ms']:>8.1f} ms  {visible(str(step['what']))}")
        self._row("call", _call_of(result), style="bold")
        self._row("result", _short(result["output"]), style="green")
        self._row("", f"{result['ms']:.0f} ms, {_protocol(result)}", style="dim")

    def agreed(self, text: str, code: str) -> None:
        """Show the protocol text and the part of the code that tells most."""
        lines = text.splitlines()
        self._row("protocol", "the text that came out, in part:")
        self._quote(lines[:MAX_TEXT_LINES], rest=len(lines) - MAX_TEXT_LINES)
        self._row("code", "the shop wrote this for it, in part:")
        whole = code.splitlines()
        shown = conversions(whole)
        self._quote(shown, rest=len(whole) - len(shown))

    def again(self, first: Mapping[str, Any], second: Mapping[str, Any]) -> None:
        """Compare the first call with the second."""
        times = first["ms"] / max(second["ms"], 0.1)
        self._row(
            "again",
            f"the same call at once: {second['ms']:.0f} ms in place of "
            f"{first['ms']:.0f} ms, {times:.0f} times as fast, nothing negotiated",
            style="green",
        )

    def units(self, result: Mapping[str, Any]) -> None:
        """Show the value in the other unit, or why there is none."""
        if result["agreed"]:
            self._row("result", _short(result["output"]), style="green")
            calls = result["llm_calls"]
            self._row(
                "", f"the buyer's side asked the model {calls} times", style="dim"
            )
            return
        self._row("declined", visible(result["reason"]), style="yellow")
        hint = (
            "the model did not find a way; `anpd negotiations show` would tell why"
            if self._model
            else "rules never guess what a value means. A model writes the conversion "
            "once, and no later call asks it: set llm.model and run this again "
            "(docs/model.md)"
        )
        self._row("", hint)

    def held(self, stranger: Stranger, reason: str, ms: float) -> None:
        """Show what a stranger's code wanted, and why it did not get it."""
        self._row("stranger", f"code that {stranger.wish}", style="bold")
        self._row("held", visible(_cause(reason)), style="green")

    def unharmed(self, result: Mapping[str, Any]) -> None:
        """Show that the shop goes on."""
        told = f"the shop works on: {_short(result['output'])} in {result['ms']:.0f} ms"
        self._row("unharmed", told)

    def booked(self, seats: int, result: Mapping[str, Any]) -> None:
        """Show one booking, and the repair that it caused."""
        messages = result["negotiation_messages"]
        repair = (
            f": the answer was wrong, so the code was repaired in {messages} messages; "
            "nothing was booked twice"
            if messages
            else ""
        )
        booking = result["output"]["booking"]
        self._row("call", f"{seats} seats, booking number {booking}{repair}")

    def end(self) -> None:
        """Say how long it took, and what to do next."""
        self._line()
        seconds = time.monotonic() - self._began
        self._line(f"all of it took {seconds:.0f} s", style="dim")
        self._line("now try this", style="bold")
        for command, why in next_commands():
            self._line(f"  {command}")
            self._line(f"      {why}", style="dim")

    def _quote(self, lines: Sequence[str], *, rest: int) -> None:
        for line in lines:
            self._line(f"     | {visible(line)}", style="dim")
        if rest > 0:
            self._line(f"     | … {rest} more lines", style="dim")

    def _row(self, name: str, text: str, *, style: str = "") -> None:
        self._line(f"     {name:<10}{_styled(text, style)}")

    def _line(self, text: str = "", *, style: str = "") -> None:
        print(_styled(text, style), flush=True)


def _styled(text: str, style: str) -> str:
    """Return a text in a colour, bold or dim, where a terminal shows it."""
    if not style or os.environ.get("NO_COLOR") or not sys.stdout.isatty():
        return text
    if style in {"bold", "dim"}:
        return click.style(text, bold=style == "bold", dim=style == "dim")
    return click.style(text, fg=style)


def conversions(lines: Sequence[str]) -> list[str]:
    """Return the functions of a half that convert names, or its last function."""
    parts: dict[str, list[str]] = {}
    name = ""
    for line in lines:
        if line[:1].strip():
            name = line.removeprefix("def ") if line.startswith("def ") else ""
        if name:
            parts.setdefault(name, []).append(line)
    wanted = [part for name, part in parts.items() if name.startswith("convert")]
    chosen = wanted or list(parts.values())[-1:]
    return [line for part in chosen for line in part if line.strip()]


def next_commands() -> list[tuple[str, str]]:
    """Return commands to try, each with what it does."""
    own = Path(sys.executable).with_name("anpd")
    found = shutil.which("anpd")
    anpd = "anpd" if found and Path(found).resolve() == own.resolve() else _near(own)
    example = _near(find_example("catalogue.py"))
    call = 'call ws://127.0.0.1:8765/ get_product -d \'{"product_id": "P12346"}\''
    return [
        (
            f"{anpd} --home ~/shop attach python {example} --expose '*'",
            "attaches a program: a file of Python functions; put yours in its place",
        ),
        (
            f"{anpd} --home ~/shop up --background --port 8765",
            "runs the shop's daemon; `anpd --home ~/shop stop` ends it",
        ),
        (
            f"{anpd} --home ~/buyer up --background --port 8766",
            "runs the buyer's daemon",
        ),
        (
            f"{anpd} --home ~/buyer {call}",
            "calls the shop; the second time it is at once",
        ),
        (
            f"{anpd} --home ~/shop status",
            "shows what runs, what is exposed, and what waits for your decision",
        ),
    ]


def _near(path: Path) -> str:
    """Return a path as one would type it here."""
    short = os.path.relpath(path)
    return shlex.quote(short if not short.startswith("..") else str(path))


def _call_of(result: Mapping[str, Any]) -> str:
    data = json.dumps(result["input"], ensure_ascii=False)
    return visible(f"{result['need']} {data}")


def _short(value: Any) -> str:
    text = visible(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= 200 else f"{text[:199]}…"


def _cause(reason: str) -> str:
    """Return the first cause of a refusal; the others follow from it."""
    text = reason.partition("failed its checks: ")[2] or reason
    first = text.partition("; ")[0]
    return first.removeprefix("handle_request fails after a good answer: ")


def _protocol(result: Mapping[str, Any]) -> str:
    messages = result["negotiation_messages"]
    if result["source"] != "negotiated":
        return f"agreed before ({result['protocol'][:12]}), nothing negotiated"
    proposals = result["proposals"]
    words = [
        f"protocol {result['protocol'][:12]}",
        f"{proposals} proposal{'s' * (proposals != 1)}",
        f"{messages} messages",
        f"{result['llm_calls']} model calls",
        *_checks(result["tests"]),
    ]
    return ", ".join(words)


def _checks(tests: Sequence[Any]) -> list[str]:
    """Return what the stored test records say of the cases run with the peer."""
    cases = [
        one["cases"] for one in tests if isinstance(one, Mapping) and "cases" in one
    ]
    return [
        f"{sum(result['passed'] for result in one['results'])} of "
        f"{len(one['results'])} test cases passed"
        for one in cases
    ]
