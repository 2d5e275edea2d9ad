"""Prints the demo for people while it runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from anp.cli.demo.observer import DemoObserver
from anp.cli.output import visible

__all__ = ["Timeline"]

MAX_RESULT = 400
"Longest result that is shown, in characters."


class Timeline(DemoObserver):
    """A timeline on the terminal; without colours where NO_COLOR or a pipe says so."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, soft_wrap=True)
        self._run = 1
        self._line("two agents meet on this machine", style="bold")
        self._line("the provider attaches its tools", style="dim")

    def attached(self, name: str, found: Sequence[str]) -> None:
        """Show what the provider offers."""
        tools = ", ".join(visible(tool.partition(".")[2]) for tool in found)
        self._row(name, tools)

    def up(self, name: str, did: str, url: str) -> None:
        """Show who is there; the second time it is no news."""
        if self._run == 1:
            self._line()
            self._row(name, did, style="cyan")
            self._row("", url, style="dim")

    def run(self, number: int) -> None:
        """Show why this run differs."""
        self._run = number
        why = (
            "first run: nothing is agreed, so they negotiate"
            if number == 1
            else "second run, both daemons restarted: what was agreed still holds"
        )
        self._line()
        self._line(why, style="bold")

    def called(self, result: Mapping[str, Any]) -> None:
        """Show one call: who, how it was agreed, the result, how long."""
        self._line()
        self._row("need", visible(result["need"]), style="bold")
        for step in result["timeline"]:
            self._line(f"    {step['ms']:>9.1f} ms  {visible(str(step['what']))}")
        self._row("peer", f"{visible(result['peer_did'])} (verified)", style="cyan")
        self._row("protocol", _protocol(result))
        text = json.dumps(result["output"], ensure_ascii=False)
        short = text if len(text) <= MAX_RESULT else f"{text[:MAX_RESULT]}…"
        self._row("result", visible(short), style="green")
        self._row("took", f"{result['ms']:.1f} ms, {result['llm_calls']} model calls")

    def broken(self, imported: Mapping[str, Any]) -> None:
        """Show what is wrong from now on."""
        self._line()
        self._line(
            "third run: a bundle with a wrong field breaks the provider's module",
            style="bold",
        )
        for half in imported["code"]:
            self._row(
                "imported", f"code for the {half['role']}, revision {half['revision']}"
            )

    def repaired(self, known: Mapping[str, Any]) -> None:
        """Show which revision is in use now."""
        for agreement in known["agreements"]:
            self._row(
                "in use",
                f"code for the {agreement['role']}, revision {agreement['revision']}: "
                "the answer was encoded again, the capability not called again",
            )

    def end(self, calls: Sequence[Mapping[str, Any]]) -> None:
        """Compare the two runs."""
        total = {
            run: sum(call["ms"] for call in calls if call["run"] == run)
            for run in (1, 2)
        }
        self._line()
        self._line(
            f"{len(calls)} calls succeeded: {total[1]:.0f} ms while agreeing, "
            f"{total[2]:.0f} ms once agreed",
            style="bold",
        )

    def _row(self, name: str, text: str, *, style: str = "") -> None:
        self._console.print(Text(f"  {name:<10}").append(text, style=style))

    def _line(self, text: str = "", *, style: str = "") -> None:
        self._console.print(Text(text, style=style))


def _protocol(result: Mapping[str, Any]) -> str:
    short = result["protocol"][:12]
    messages = result["negotiation_messages"]
    if result["source"] != "negotiated":
        repair = f", repaired in {messages} messages" if messages else ""
        return f"{short}, from an earlier agreement{repair}"
    proposals = result["proposals"]
    text = f"{short}, {proposals} proposal{'s' * (proposals != 1)}, {messages} messages"
    checks = _checks(result["tests"])
    return f"{text}, module checks: {checks}" if checks else text


def _checks(tests: Any) -> str:
    """Return what the stored test records say, whatever their number."""
    found = [test for test in tests if isinstance(test, Mapping)]
    return ", ".join(
        visible(f"{name} {_outcome(value)}")
        for test in found
        for name, value in test.items()
    )


def _outcome(value: Any) -> str:
    """Return the outcome of one kind of test in a few words."""
    if not isinstance(value, Mapping):
        return str(value)
    results = value.get("results") or ()
    passed = sum(result["passed"] for result in results)
    return f"{value['mode']}, {passed} of {len(results)} passed"
