"""negotiations watch, and the progress of a call: live events as lines."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from click import Context

from anp.cli.client import Client, client_of, problem_error, segment
from anp.cli.commands import negotiations
from anp.cli.grammar import Argument, Commands, Option
from anp.cli.output import event_line, progress, transient
from anp.errors import CallError, ErrorKind

Json = Annotated[bool, Option("--json", help="Print one JSON object a line.")]

QUIET = 1.0
"Seconds of a call before the terminal says what it waits for."


def register(app: Commands) -> None:
    """Add the groups of negotiations, with the command of this file."""
    negotiations.register(app)
    negotiations.negotiations_app.command("watch")(watch_negotiations)


def watch_negotiations(
    context: Context,
    negotiation: Annotated[
        str,
        Argument(
            metavar="[ID]",
            help="Id of one negotiation, or its first characters; all without it.",
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """Watch negotiations live; with an id, until that one has ended."""
    client = client_of(context)
    wanted = None
    events = client.events("/v1/events")
    if negotiation:
        # The stream is open before the question, so that no event falls between.
        next(events)
        found = client.get(f"/v1/negotiations/{segment(negotiation)}")
        wanted = found["id"]
        if not found["running"]:
            progress(f"negotiation {wanted} ended: {found['outcome']}")
            return
    _print(_negotiations(events, wanted), as_json=as_json)


def follow_call(client: Client, body: dict[str, Any]) -> Any:
    """Call a peer and show in the terminal what it waits for; Ctrl-C cancels the call.

    Raises:
        CallError: There is no result.
    """
    call_id = ""
    # The daemon cancels the call when this stream ends before it, whatever ended it.
    events = client.events("/v1/calls/follow", body)
    try:
        with _Waiting() as waiting:
            for event in events:
                call_id = event["data"]["call"] if event else call_id
                if event and not waiting.take(event):
                    # The word of the owner is kept; the same command asks again.
                    return client.take_back(client.get(f"/v1/calls/{call_id}"))
        call = client.get(f"/v1/calls/{call_id}")
    except KeyboardInterrupt:
        events.close()
        if not call_id:
            raise CallError(
                ErrorKind.INTERRUPTED, "interrupted", may_have_run=True
            ) from None
        # Its end says if the peer may have begun with it.
        call = client.post(f"/v1/calls/{call_id}/cancel")
    if call["result"] is not None:
        return call["result"]
    raise problem_error(call["problem"])


class _Waiting:
    """The line of a terminal that says what a call waits for."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._what = ""
        self._shown = False
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._clock = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> _Waiting:
        self._clock.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        with self._lock:
            self._clear()

    def take(self, event: dict[str, Any]) -> bool:
        """Show an event of the call; return False when nothing more is waited for."""
        data = event["data"]
        if event["type"] == "call.phase" or "progress" in data:
            # A step that is over, without `progress`, is nothing to wait for.
            self._what = data["what"]
        line = line_of(event)
        if line is not None:
            with self._lock:
                self._clear()
                progress(f"  {line}")
        return bool(event["type"] != "call.waiting")

    def _tick(self) -> None:
        """Show the line anew until it is over, beginning after a second."""
        pause = QUIET
        while not self._over.wait(pause):
            pause = 0.1
            with self._lock:
                if self._what and not self._over.is_set():
                    seconds = time.monotonic() - self._began
                    transient(f"  {seconds:5.1f} s  {self._what}")
                    self._shown = True

    def _clear(self) -> None:
        if self._shown:
            transient("")
            self._shown = False


def line_of(event: dict[str, Any]) -> str | None:
    """Return an event of a call as a line for people, or None for those left out."""
    data = event["data"]
    match event["type"]:
        case "negotiation.turn":
            who = "we" if data["direction"] == "sent" else "the peer"
            words = [f"proposal {data['proposal']}", who, data["status"]]
            if data["lines_added"] or data["lines_removed"]:
                words.append(f"+{data['lines_added']} -{data['lines_removed']} lines")
            if data["summary"]:
                words.append(" ".join(data["summary"].split())[:100])
            words.append(f"{data['seconds']:.2f} s, {data['tokens']} tokens")
            return f"          {', '.join(words)}"
        case "negotiation.waiting":
            return (
                f"          waits for your decision: anpd approvals show {data['id']}"
            )
        case "call.waiting":
            return f"          {data['detail']}"
    return None


def _negotiations(
    events: Iterable[dict[str, Any]], wanted: str | None
) -> Iterator[dict[str, Any]]:
    for event in events:
        if not event or not event["type"].startswith("negotiation."):
            continue
        if wanted in {None, event["data"]["id"]}:
            yield event
            if wanted is not None and event["type"] == "negotiation.ended":
                return


def _print(events: Iterable[dict[str, Any]], *, as_json: bool) -> None:
    for event in events:
        if event:
            print(json.dumps(event) if as_json else event_line(event), flush=True)
