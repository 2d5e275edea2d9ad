"""The demo: two agents meet on this machine, through the commands a user types.

Nothing here negotiates, calls or stores: every step is a process of `anpd` with its
own arguments, and what is shown is what those processes printed.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anp.cli.demo.needs import BOOKING, PRODUCT, TIME, UNITS, DemoNeed
from anp.cli.demo.observer import DemoObserver
from anp.cli.demo.stage import DemoPeer, Stage, signals_interrupt
from anp.cli.demo.strangers import SEATS, STRANGERS, check_repair, with_tail
from anp.cli.demo.view import find_example
from anp.errors import CallError, ErrorKind
from anp.extras import require

if TYPE_CHECKING:
    from anp.sidecar.config.settings import Config

SERVER = "mcp_server_time"
"The module of the MCP server that the shop attaches."

SHOP, BUYER = "shop", "buyer"

REFUSED = frozenset({ErrorKind.GENERATED_CODE})
"How an import ends whose code does what it may not."


def run_demo(config: Config, *, as_json: bool, keep: bool) -> None:
    """Run the whole demo and print it.

    Args:
        config: The owner's; of it only the model and its budget are used.

    Raises:
        CallError: Something is missing here, or a step failed; nothing is left behind.
    """
    from anp.cli.demo.view import Timeline

    require("demo", "anpd demo")
    observer = DemoObserver() if as_json else Timeline(config.llm.model)
    with _folder(keep) as folder, signals_interrupt():
        document = _Demo(folder, observer, config).play()
    check_calls(document["calls"])
    check_repair(document["repair"])
    if as_json:
        print(json.dumps(document, ensure_ascii=False, indent=2))
    elif isinstance(observer, Timeline):
        observer.end()


def check_calls(calls: Sequence[Mapping[str, Any]]) -> None:
    """Raise `CallError` unless the first run agreed and the second used that."""
    agreed: dict[str, str] = {}
    for call in calls:
        first = call["run"] == 1
        wanted = "negotiated" if first else "agreement"
        good = call["source"] == wanted and (call["negotiation_messages"] > 0) == first
        if first:
            agreed[call["tool"]] = call["protocol"]
        if not good or agreed.get(call["tool"]) != call["protocol"]:
            raise CallError(
                ErrorKind.UNEXPECTED,
                f"demo: {call['tool']} in run {call['run']} came from "
                f"{call['source']} after {call['negotiation_messages']} messages, "
                f"expected {wanted}",
            )


def model_settings(config: Config) -> str:
    """Return the owner's settings of the model as a configuration; "" without one."""
    if config.llm.model is None:
        return ""
    lines = []
    for section in ("llm", "budget"):
        lines.append(f"[{section}]")
        found = getattr(config, section)
        plain = type(found)()
        for one in fields(found):
            value = getattr(found, one.name)
            if value != getattr(plain, one.name):
                lines.append(f"{one.name} = {_toml(value)}")
    return "\n".join([*lines, ""])


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        members = (f"{_toml(name)} = {_toml(one)}" for name, one in value.items())
        return f"{{ {', '.join(members)} }}"
    return json.dumps(str(value) if isinstance(value, Path) else value)


class _Demo:
    """One showing: a shop and a buyer who never met, and the steps of their meeting."""

    def __init__(self, folder: Path, observer: DemoObserver, config: Config) -> None:
        self._stage = Stage(folder)
        self._observer = observer
        self._calls: list[dict[str, Any]] = []
        self._tests: dict[str, Any] = {}
        if settings := model_settings(config):
            for name in (SHOP, BUYER):
                home = self._stage.home(name)
                home.mkdir(mode=0o700)
                (home / "anpd.toml").write_text(settings, "utf-8")

    def play(self) -> dict[str, Any]:
        """Run all steps and return what came of them as one document."""
        step = self._observer.step
        with step("the shop attaches its programs, which know nothing of anpd", 3):
            self._attach_all()
        with contextlib.ExitStack() as running:
            with step("two daemons start: the shop's and the buyer's", 2):
                peers = running.enter_context(self._stage.daemons(SHOP, BUYER))
                self._observer.up(peers)
            with step("their tools do not fit, and nothing is agreed: they do it", 4):
                first = self._agree(peers[0], PRODUCT)
                again = self._ask(peers[0], PRODUCT)
                self._observer.again(first, again)
                for need in (TIME, BOOKING):
                    self._agree(peers[0], need)
            with step("another unit: Fahrenheit is wanted, the shop has Celsius", 2):
                units = self._convert(peers[0])
        with contextlib.ExitStack() as running:
            with step("both daemons restart: what was agreed still holds", 3):
                [shop, _] = running.enter_context(self._stage.daemons(SHOP, BUYER))
                for need in (PRODUCT, TIME, BOOKING):
                    self._call(shop, need, run=2)
            with step("strangers' code comes to the shop; the sandbox holds it", 5):
                strangers = self._strangers(shop)
            with step("code that errs is found out by the buyer, and repaired", 3):
                repair = self._repair(shop)
        return {
            "peers": peers,
            "calls": self._calls,
            "again": again,
            "units": units,
            "strangers": strangers,
            "repair": repair,
        }

    def _attach_all(self) -> None:
        python = ["python", "--python", sys.executable]
        wanted: dict[str, list[str]] = {
            "catalogue": [
                *(*python, "--read-only", "get_product"),
                *("--", f"{find_example('catalogue.py')}:get_product"),
            ],
            "weather": [
                *(*python, "--read-only", "get_weather"),
                *("--", str(find_example("weather.py"))),
            ],
            "booking": [*python, "--", str(find_example("booking.py"))],
            "time": ["mcp", "--", sys.executable, "-m", SERVER],
        }
        # The first one makes the home; the others start beside one another.
        names = list(wanted)
        found = [self._attach(names[0], *wanted[names[0]])]
        with ThreadPoolExecutor(2) as pool:
            found += pool.map(lambda one: self._attach(one, *wanted[one]), names[1:])
        for name, one in zip(names, found, strict=True):
            self._observer.attached(name, one["exposed"])

    def _attach(self, name: str, kind: str, *words: str) -> Any:
        options = ["--name", name, "--expose", "*"]
        found = self._stage.json(SHOP, "attach", kind, *options, *words)
        if found["problem"]:
            raise CallError(
                ErrorKind.LOCAL_RESOURCE,
                f"demo: {name} does not start: {found['problem']}",
            )
        return found

    def _ask(self, shop: DemoPeer, need: DemoNeed) -> dict[str, Any]:
        address = f"{shop['url']}#{shop['did']}"
        result = self._stage.json(BUYER, *need.words(self._stage, address))
        return {"need": need.need, "input": dict(need.data), **result}

    def _call(self, shop: DemoPeer, need: DemoNeed, *, run: int) -> dict[str, Any]:
        result = self._ask(shop, need)
        digest = result["protocol"]
        if digest not in self._tests:
            known = self._stage.json(BUYER, "protocols", "show", digest)
            self._tests[digest] = known["tests"]
        shown = {"run": run, "tool": need.tool, **result, "tests": self._tests[digest]}
        self._calls.append(shown)
        self._observer.called(shown)
        return shown

    def _agree(self, shop: DemoPeer, need: DemoNeed) -> dict[str, Any]:
        """Have the first call of a need, and show what the two agreed on."""
        if need.offered:
            self._observer.differs(need)
        call = self._call(shop, need, run=1)
        if need is PRODUCT:
            digest = call["protocol"]
            text = self._stage.output(BUYER, "protocols", "show", digest, "--text")
            known = self._stage.json(SHOP, "protocols", "show", digest)
            self._observer.agreed(text.decode(), known["code"][0]["source"])
        return call

    def _convert(self, shop: DemoPeer) -> dict[str, Any]:
        """Ask for another unit, which rules decline and a model may serve."""
        self._observer.differs(UNITS)
        try:
            result: dict[str, Any] = {"agreed": True, **self._ask(shop, UNITS)}
        except CallError as exc:
            if exc.kind is not ErrorKind.NEGOTIATION_REJECTED:
                raise
            result = {"agreed": False, "reason": _reason(exc)}
        self._observer.units(result)
        return result

    def _export(self, digest: str) -> bytes:
        words = ("protocols", "export", digest, "--role", "provider", "-o")
        path = self._stage.folder / "bundle.json"
        self._stage.output(SHOP, *words, str(path))
        data = path.read_bytes()
        path.unlink()
        return data

    def _import(self, data: bytes) -> Any:
        path = self._stage.folder / "changed.json"
        path.write_bytes(data)
        return self._stage.json(SHOP, "protocols", "import", str(path))

    def _agreed_on(self, need: DemoNeed) -> str:
        found = (one["protocol"] for one in self._calls if one["tool"] == need.tool)
        return str(next(found))

    def _strangers(self, shop: DemoPeer) -> list[dict[str, Any]]:
        """Import code that wants what it may not have; then call as before."""
        bundle, held = self._export(self._agreed_on(PRODUCT)), []
        for stranger in STRANGERS:
            began = time.monotonic()
            try:
                self._import(with_tail(bundle, stranger.tail))
            except CallError as exc:
                if exc.kind not in REFUSED:
                    raise
                ms = 1000 * (time.monotonic() - began)
                held.append({"wish": stranger.wish, "ms": ms, "reason": _reason(exc)})
                self._observer.held(stranger, _reason(exc), ms)
            else:
                raise CallError(
                    ErrorKind.UNEXPECTED,
                    f"demo: code that {stranger.wish} was taken; report this",
                )
        self._observer.unharmed(self._ask(shop, PRODUCT))
        return held

    def _repair(self, shop: DemoPeer) -> dict[str, Any]:
        """Break the provider's code by an import, and call until it is repaired."""
        digest = self._agreed_on(BOOKING)
        imported = self._import(with_tail(self._export(digest)))
        address = f"{shop['url']}#{shop['did']}"
        calls = []
        for seats in SEATS:
            data = json.dumps({"show": "Tosca", "seats": seats})
            words = ("call", address, BOOKING.need, "-d", data)
            calls.append(self._stage.json(BUYER, *words))
            self._observer.booked(seats, calls[-1])
        known = self._stage.json(SHOP, "protocols", "show", digest)
        [agreement] = [one for one in known["agreements"] if one["role"] == "provider"]
        [half] = [
            one for one in known["code"] if one["revision"] == agreement["revision"]
        ]
        return {"imported": imported, "calls": calls, "origin": half["origin"]}


def _reason(exc: CallError) -> str:
    """Return the words of a command that was to fail, without ours in front."""
    return exc.detail.split(": ", 2)[-1]


@contextlib.contextmanager
def _folder(keep: bool) -> Iterator[Path]:
    """Give a folder of our own, with a path short enough for sockets."""
    folder = Path(tempfile.mkdtemp(prefix="anpd-"))
    try:
        yield folder
    finally:
        if keep:
            print(f"anpd: the demo's homes are kept in {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder)
