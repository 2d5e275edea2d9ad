"""reload, health, doctor, dashboard: the state of a daemon and of its home."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from click import Context

from anp.cli.client import Client, client_of, home_of, load_settings
from anp.cli.grammar import Commands, Option
from anp.cli.options import Json
from anp.cli.output import print_one, progress
from anp.errors import CallError, ConfigError, ErrorKind
from anp.sidecar.home.home import Home

if TYPE_CHECKING:
    from anp.sidecar.process.doctor import DoctorCheck

MARKS = {"ok": "ok  ", "warning": "warn", "bad": "BAD "}

PROBE_TIMEOUT = 5.0
"Seconds until a daemon that says nothing counts as dead."

MAX_ANSWER = 64 * 1024


def register(app: Commands) -> None:
    """Add the commands of this file."""
    app.command("reload")(reload)
    app.command("health")(health)
    app.command("doctor")(doctor)
    app.command("dashboard")(dashboard)


def reload(context: Context, as_json: Json = False) -> None:
    """Have a running daemon read its configuration and attachments again."""
    found = client_of(context).post("/v1/reload")
    names = ", ".join(found["attachments"]) or "none"
    told = [
        ("attachments", f"restarted: {names}"),
        ("in effect", ", ".join(found["applied"]) or "no other setting"),
    ]
    print_one(found, told, as_json=as_json)
    if found["restart"] and not as_json:
        progress(f"anpd: these need a restart: {', '.join(found['restart'])}")


def health(
    context: Context,
    live: Annotated[
        bool, Option("--live", help="Check only that the daemon runs.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check a daemon: exit code 0 if it can take calls, otherwise 4."""
    home, _ = home_of(context.obj)
    status, found = _ask(home, "/livez" if live else "/readyz")
    parts = found.get("parts", {}).items()
    told = [(name, f"{part['state']:<9} {part['text']}") for name, part in parts]
    print_one(found, [str(found.get("status", "unknown")), *told], as_json=as_json)
    if status != 200:
        raise CallError(
            ErrorKind.DAEMON_UNREACHABLE,
            f"the daemon of {home.path} is not ready; its parts are listed above",
        )


def _ask(home: Home, path: str) -> tuple[int, dict[str, Any]]:
    """Ask over the socket with the standard library alone: a probe has to be cheap."""
    address = home.read_api()
    connection = http.client.HTTPConnection("anpd", timeout=PROBE_TIMEOUT)
    try:
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        link.settimeout(PROBE_TIMEOUT)
        connection.sock = link
        link.connect(address.socket)
        connection.request("GET", path)
        answer = connection.getresponse()
        found = json.loads(answer.read(MAX_ANSWER))
    except (OSError, ValueError, http.client.HTTPException) as exc:
        raise CallError(
            ErrorKind.DAEMON_UNREACHABLE,
            f"the daemon of {home.path} does not answer ({exc}); see its log",
        ) from exc
    finally:
        connection.close()
    return answer.status, found


def dashboard(context: Context, as_json: Json = False) -> None:
    """Print a link that opens the dashboard in one browser of this machine, once."""
    made = client_of(context).post("/v1/dashboard", {})
    print_one(made, [made["link"]], as_json=as_json)
    if not as_json:
        minutes = f"{made['expires_in'] / 60:.0f} minutes"
        progress(
            f"it works once, within {minutes}; the browser stays signed in for 12 h"
        )


def doctor(
    context: Context,
    fix: Annotated[
        bool,
        Option(
            "--fix", help="Carry out the harmless repairs: file modes, leftover files."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Check this machine, the home and the daemon, and print a repair for each fault.

    Ends with 0 when nothing is bad, else with 3; warnings are not bad.
    """
    from anp.sidecar.process.doctor import DoctorCheck, Level, examine, repair

    home, _ = home_of(context.obj)
    checks: list[DoctorCheck] = []
    config = None
    try:
        config = load_settings(context.obj)
        checks.append(
            DoctorCheck(name="configuration", text=f"peers: {config.peers_policy}")
        )
    except ConfigError as exc:
        checks.append(
            DoctorCheck(
                name="configuration",
                level=Level.BAD,
                text=str(exc),
                why="the daemon does not start with it",
                fix="anpd config path names the files; anpd config check reads them",
            )
        )
    looked = examine(home, config)
    done = repair(looked) if fix else []
    if done:
        looked = examine(home, config)
    checks += looked
    running, info = _running(home)
    checks += running
    checks += asyncio.run(_isolation())
    answer = {"checks": [_shown(one) for one in checks], "info": info, "fixed": done}
    told = [f"fixed {line}" for line in done]
    told += [line for check in checks for line in _lines(check)]
    print_one(answer, told, as_json=as_json)
    if any(check.level is Level.BAD for check in checks):
        hint = "" if fix or not any(c.can_fix for c in looked) else "; try --fix"
        raise ConfigError(f"doctor found a fault, marked BAD above{hint}")


def _running(home: Home) -> tuple[list[DoctorCheck], dict[str, Any] | None]:
    """Return the facts and checks of a running daemon."""
    from anp.sidecar.process.doctor import DoctorCheck, Level

    try:
        info: dict[str, Any] = Client(home).get("/v1/info")
    except CallError as exc:
        return [DoctorCheck(name="daemon", text=f"not running: {exc.detail}")], None
    checks = [DoctorCheck(name="daemon", text=str(info["address"]))]
    for attached in info["attachments"]:
        name = f"attachment {attached['name']}"
        if attached["healthy"]:
            text = f"{attached['capabilities']} capabilities"
            checks.append(DoctorCheck(name=name, text=text))
            continue
        checks.append(
            DoctorCheck(
                name=name,
                level=Level.BAD,
                text=str(attached["problem"] or "it does not answer"),
                why="its capabilities are not offered until it starts",
                fix="start it by hand to see its messages, then run `anpd reload`",
            )
        )
    return checks, info


async def _isolation() -> list[DoctorCheck]:
    from anp.sidecar.process.doctor import DoctorCheck, Level
    from sandbox.errors import SandboxError
    from sandbox.processes.process import measure_isolation

    try:
        isolation = await measure_isolation()
    except SandboxError as exc:
        return [
            DoctorCheck(
                name="isolation",
                level=Level.BAD,
                text=str(exc),
                why="no protocol can be used without workers",
                fix="anpd --debug up shows why the fork server does not start",
            )
        ]
    reduced = isolation.level == "reduced"
    said = "only code written by rules runs" if reduced else "code of a model runs too"
    checks = [
        DoctorCheck(
            name="isolation",
            level=Level.WARNING if reduced else Level.OK,
            text=f"{isolation.level}: {said}",
            why="code of a model runs only where the kernel can isolate it"
            if reduced
            else "",
            fix="Linux 3.17 or later with seccomp, also inside the container; or "
            'sandbox.level = "reduced" and sandbox.without_kernel = "as my own", '
            "which run it as if you had written it"
            if reduced
            else "",
        )
    ]
    for name, active, reason in isolation.layers:
        text = f"{'active' if active else 'inactive'}: {reason}"
        checks.append(DoctorCheck(name=f"  layer {name}", text=text))
    return checks


def _shown(check: DoctorCheck) -> dict[str, Any]:
    return {
        "check": check.name,
        "ok": check.level.value != "bad",
        "level": check.level.value,
        "detail": check.text,
        "why": check.why,
        "fix": check.fix,
        "can_fix": check.can_fix,
    }


def _lines(check: DoctorCheck) -> Iterator[str]:
    yield f"{MARKS[check.level.value]} {check.name:<22} {check.text}"
    for word, text in (("why", check.why), ("fix", check.fix)):
        if text:
            yield f"     {word:<22} {text}"
