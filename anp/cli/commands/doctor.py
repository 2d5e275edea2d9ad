"""doctor: what works here, what not, why, and how to fix it."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from anp.cli.client import Client, home_of
from anp.cli.output import print_json, visible
from anp.errors import CallError, ConfigError

__all__ = ["register"]

MARKS = {"ok": "ok  ", "warning": "warn", "bad": "BAD "}


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command("doctor")(doctor)


def doctor(
    context: typer.Context,
    fix: Annotated[
        bool, typer.Option("--fix", help="Do what is safe: modes, leftovers.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what works here, what not, why it matters, and how to fix it.

    Ends with 0 when nothing is bad, else with 3; warnings are not bad.
    """
    from anp.cli.commands.daemon import load_settings
    from anp.sidecar.process.doctor import Check, Level, examine, repair

    home, _ = home_of(context.obj)
    checks: list[Check] = []
    config = None
    try:
        config = load_settings(context.obj, {})
        checks.append(Check(name="configuration", text=f"peers: {config.peers_policy}"))
    except ConfigError as exc:
        checks.append(
            Check(
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
    if as_json:
        print_json(
            {"checks": [_shown(one) for one in checks], "info": info} | {"fixed": done}
        )
    else:
        for line in done:
            print(visible(f"fixed {line}"))
        for check in checks:
            _print(check)
    if any(check.level is Level.BAD for check in checks):
        hint = "" if fix or not any(c.can_fix for c in looked) else "; try --fix"
        raise ConfigError(f"doctor found a problem; see above{hint}")


def _running(home: Any) -> tuple[list[Any], dict[str, Any] | None]:
    """Return what a running daemon says of itself."""
    from anp.sidecar.process.doctor import Check, Level

    try:
        info: dict[str, Any] = Client(home).get("/v1/info")
    except CallError as exc:
        return [Check(name="daemon", text=f"not running: {exc.detail}")], None
    checks = [Check(name="daemon", text=str(info["address"]))]
    for attached in info["attachments"]:
        name = f"attachment {attached['name']}"
        if attached["healthy"]:
            text = f"{attached['capabilities']} capabilities"
            checks.append(Check(name=name, text=text))
            continue
        checks.append(
            Check(
                name=name,
                level=Level.BAD,
                text=str(attached["problem"] or "it does not answer"),
                why="its capabilities are offered to nobody until it starts",
                fix="start it by hand to see its own words, then `anpd reload`",
            )
        )
    return checks, info


async def _isolation() -> list[Any]:
    from anp.sidecar.process.doctor import Check, Level
    from sandbox.errors import SandboxError
    from sandbox.processes.process import measure_isolation

    try:
        isolation = await measure_isolation()
    except SandboxError as exc:
        return [
            Check(
                name="isolation",
                level=Level.BAD,
                text=str(exc),
                why="no protocol can be spoken without workers",
                fix="anpd --debug up shows why the fork server does not start",
            )
        ]
    reduced = isolation.level == "reduced"
    said = "only code written by rules runs" if reduced else "code of a model runs too"
    checks = [
        Check(
            name="isolation",
            level=Level.WARNING if reduced else Level.OK,
            text=f"{isolation.level}: {said}",
            why="code of a model runs only where the kernel can lock it in"
            if reduced
            else "",
            fix="Linux 3.17 or later with seccomp, also inside the container; or "
            'sandbox.level = "reduced", which does without'
            if reduced
            else "",
        )
    ]
    for name, active, reason in isolation.layers:
        text = f"{'active' if active else 'inactive'}: {reason}"
        checks.append(Check(name=f"  layer {name}", text=text))
    return checks


def _shown(check: Any) -> dict[str, Any]:
    return {
        "check": check.name,
        "ok": check.level.value != "bad",
        "level": check.level.value,
        "detail": check.text,
        "why": check.why,
        "fix": check.fix,
        "can_fix": check.can_fix,
    }


def _print(check: Any) -> None:
    print(visible(f"{MARKS[check.level.value]} {check.name:<22} {check.text}"))
    for word, text in (("why", check.why), ("fix", check.fix)):
        if text:
            print(visible(f"     {word:<22} {text}"))
