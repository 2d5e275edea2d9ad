"""init, up, attach, call, doctor, demo: the daemon and what it does."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from anp.cli.client import Client, home_of
from anp.cli.output import Settings, print_json, visible
from anp.errors import EXIT_CODES, CallError, ConfigError, ErrorKind

__all__ = ["load_settings", "register"]

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
attach_app = typer.Typer(no_args_is_help=True, help="Attach what the agent can do.")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("init")(init)
    app.command("up")(up)
    app.command("call")(call)
    app.command("doctor")(doctor)
    app.command("demo")(demo)
    app.add_typer(attach_app, name="attach")


def init(
    context: typer.Context,
    method: Annotated[str, typer.Option(help="did:key or did:all.")] = "did:key",
    as_json: Json = False,
) -> None:
    """Make keys, a DID and a configuration."""
    from anp.identity.dids import Identities
    from anp.identity.keys import PrivateKey
    from anp.sidecar.config import default_config_text
    from anp.sidecar.home import write_atomic

    if method not in {"did:key", "did:all"}:
        raise CallError(ErrorKind.USAGE, f"--method {method}: use did:key or did:all")
    home, _ = home_of(context.obj)
    if home.key_file.exists():
        raise ConfigError(f"{home.path} has an identity already; nothing was changed")
    home.create()
    key = PrivateKey.create(home.key_file)
    if not home.config_file.exists():
        write_atomic(home.config_file, default_config_text(method).encode())
    did = Identities.of_method(key, method).primary.did
    if as_json:
        print_json({"home": str(home.path), "did": did})
        return
    print(f"home  {home.path}\ndid   {did}\n")
    print(f"next: anpd --home {home.path} attach … and anpd --home {home.path} up")


def up(
    context: typer.Context,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes a free one.")] = None,
    ready_file: Annotated[
        Path | None, typer.Option(help="Gets url and did as JSON when ready.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the daemon in the foreground."""
    from anp.sidecar.daemon import run_daemon

    settings: Settings = context.obj
    home, _ = home_of(settings)
    flags: dict[str, Any] = {}
    if host is not None:
        flags["listen.host"] = host
    if port is not None:
        flags["listen.port"] = port
    is_new = not home.key_file.exists()
    config = load_settings(settings, flags)

    def on_ready(url: str, did: str) -> None:
        if as_json:
            known = {"did": did, "url": url, "address": f"{url}#{did}"}
            print(json.dumps(known), flush=True)
            return
        if is_new:
            print(f"made a new identity in {home.path}")
        print(f"did      {did}\naddress  {url}#{did}", flush=True)

    asyncio.run(run_daemon(home, config, ready_file=ready_file, on_ready=on_ready))


def call(
    context: typer.Context,
    peer: Annotated[str, typer.Argument(help="Name, DID, URL or URL#DID.")],
    task: Annotated[str, typer.Argument(help="What is wanted, or a [[task]]'s name.")],
    data: Annotated[
        str, typer.Option("-d", "--data", help="JSON, @file or - for stdin.")
    ] = "{}",
    timeout: Annotated[float | None, typer.Option(help="Seconds in all.")] = None,
    input_schema: Annotated[Path | None, typer.Option()] = None,
    output_schema: Annotated[Path | None, typer.Option()] = None,
    trust_first_use: Annotated[bool, typer.Option("--trust-first-use")] = False,
    mode: Annotated[
        str, typer.Option(help="auto, protocol or natural-language.")
    ] = "auto",
    as_json: Json = False,
) -> None:
    """Call a peer."""
    wanted: str | dict[str, Any] = task
    if input_schema or output_schema:
        wanted = {
            "requirement": task,
            "input_schema": _json_file(input_schema),
            "output_schema": _json_file(output_schema),
        }
    body: dict[str, Any] = {"peer": peer, "task": wanted, "input": _data(data)}
    body |= {"mode": mode, "trust_first_use": trust_first_use}
    if timeout is not None:
        body["timeout"] = timeout
    home, _ = home_of(context.obj)
    answer = Client(home).post("/v1/calls", body)
    if as_json:
        print_json(answer)
        return
    print_json(answer["output"])
    print(
        f"{answer['source']} {(answer['protocol'] or '-')[:12]} "
        f"negotiation_messages={answer['negotiation_messages']} ms={answer['ms']}",
        file=sys.stderr,
    )


def doctor(context: typer.Context, as_json: Json = False) -> None:
    """Say what works here, what not, and how to fix it."""
    from anp.identity.keys import PrivateKey
    from anp.sidecar.modelling import model_summary
    from sandbox.process import measure_isolation

    home, _ = home_of(context.obj)
    checks: list[dict[str, Any]] = []

    def check(name: str, good: bool, text: str) -> None:
        checks.append({"check": name, "ok": good, "detail": text})

    try:
        config = load_settings(context.obj, {})
        check("configuration", True, f"peers: {config.peers_policy}")
        check("model", *model_summary(config.llm))
    except ConfigError as exc:
        check("configuration", False, str(exc))
    if home.key_file.exists():
        try:
            PrivateKey.load(home.key_file)
            check("identity", True, str(home.key_file))
        except ConfigError as exc:
            check("identity", False, str(exc))
    else:
        check("identity", True, f"none yet; `anpd --home {home.path} init` makes one")
    info: dict[str, Any] | None = None
    try:
        info = Client(home).get("/v1/info")
        check("daemon", True, str(info["address"]))
    except CallError as exc:
        check("daemon", True, f"not running: {exc.detail}")
    for attached in (info or {}).get("attachments", []):
        text = attached["problem"] or f"{attached['capabilities']} capabilities"
        check(f"attachment {attached['name']}", attached["healthy"], text)
    isolation = asyncio.run(measure_isolation())
    check("isolation", True, f"{isolation.level}: {_what_runs(isolation.level)}")
    for name, active, reason in isolation.layers:
        check(
            f"  layer {name}", True, f"{'active' if active else 'inactive'}: {reason}"
        )
    if as_json:
        print_json({"checks": checks, "info": info})
    else:
        for entry in checks:
            mark = "ok  " if entry["ok"] else "BAD "
            print(f"{mark} {entry['check']:<22} {entry['detail']}")
    if not all(entry["ok"] for entry in checks):
        raise ConfigError("doctor found a problem; see above")


def _what_runs(level: str) -> str:
    if level == "reduced":
        return (
            "only code written by rules runs; on Linux 3.17 or later with seccomp "
            'code of a model runs too; sandbox.level = "reduced" does without'
        )
    return "code of a model runs too"


def demo(
    context: typer.Context,
    as_json: Json = False,
    keep: Annotated[bool, typer.Option(help="Keep the temporary homes.")] = False,
) -> None:
    """Let two agents meet on this machine."""
    from anp.cli.demo import run_demo

    run_demo(as_json=as_json, keep=keep)


@attach_app.command("mcp")
def attach_mcp(
    context: typer.Context,
    command: Annotated[list[str], typer.Argument(help="-- CMD ARGS…")],
    name: Annotated[str | None, typer.Option()] = None,
    expose: Annotated[list[str] | None, typer.Option()] = None,
    env: Annotated[list[str] | None, typer.Option(help="K=V")] = None,
    read_only: Annotated[list[str] | None, typer.Option()] = None,
    idempotent: Annotated[list[str] | None, typer.Option()] = None,
    conversational: Annotated[
        list[str] | None, typer.Option(help="Tool that answers natural language.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Attach an MCP server over stdio."""
    if command[0].startswith(("http://", "https://")):
        raise CallError(
            ErrorKind.USAGE,
            "MCP over HTTP is not built yet; give a command: attach mcp -- CMD ARGS…",
        )
    program = Path(command[-1] if len(command) > 2 else command[0]).stem
    _attach(
        context.obj,
        as_json,
        kind="mcp",
        name=name or _name(program),
        command=tuple(command),
        expose=tuple(expose or ()),
        env=_pairs(env),
        read_only=tuple(read_only or ()),
        idempotent=tuple(idempotent or ()),
        conversational=tuple(conversational or ()),
    )


@attach_app.command("python")
def attach_python(
    context: typer.Context,
    target: Annotated[str, typer.Argument(help="MODULE:FUNCTION or path.py:FUNCTION")],
    name: Annotated[str | None, typer.Option()] = None,
    expose: Annotated[list[str] | None, typer.Option()] = None,
    env: Annotated[list[str] | None, typer.Option(help="K=V")] = None,
    python: Annotated[Path | None, typer.Option(help="Interpreter.")] = None,
    cwd: Annotated[Path | None, typer.Option(help="Folder to run in.")] = None,
    read_only: Annotated[list[str] | None, typer.Option()] = None,
    idempotent: Annotated[list[str] | None, typer.Option()] = None,
    conversational: Annotated[
        list[str] | None, typer.Option(help="Tool that answers natural language.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Attach a Python function, or all public ones of a module."""
    from anp.sidecar.attachments.python_child import find_interpreter

    module, _, function = target.partition(":")
    short = function.rpartition(".")[2] or Path(module).stem.rpartition(".")[2]
    _attach(
        context.obj,
        as_json,
        kind="python",
        name=name or _name(short),
        target=target,
        python=(python or find_interpreter(dict(os.environ))).absolute(),
        cwd=cwd,
        expose=tuple(expose or ()),
        env=_pairs(env),
        read_only=tuple(read_only or ()),
        idempotent=tuple(idempotent or ()),
        conversational=tuple(conversational or ()),
    )


def _attach(settings: Settings, as_json: bool, **fields: Any) -> None:
    """Write an attachment's file, try it once, and tell a running daemon.

    One that does not start is saved too: what it needs may come later, and the daemon
    goes on trying. The exit code is that of a wrong configuration.
    """
    import re

    from anp.sidecar.attachments import AttachmentSpec, save_attachment
    from anp.sidecar.attachments.spec import NAME_PATTERN

    # The file is checked when it is read; a bad name would keep the daemon down.
    if not re.fullmatch(NAME_PATTERN, fields["name"]):
        raise CallError(
            ErrorKind.USAGE,
            f"--name {fields['name']}: use letters, digits, - and _, at most 64",
        )

    fields["cwd"] = (fields.get("cwd") or Path.cwd()).absolute()
    home, _ = home_of(settings)
    home.create()
    spec = AttachmentSpec(**fields)
    found, problem = asyncio.run(_try(spec))
    save_attachment(home.attachments, spec)
    running = home.is_running()
    if running:
        Client(home).post("/v1/reload")
    exposed = [n for n in found if _is_exposed(spec.expose, n)]
    told = {
        "name": spec.name,
        "found": found,
        "exposed": exposed,
        "problem": problem,
        "daemon": "reloaded" if running else "not running",
    }
    if problem is not None:
        raise typer.Exit(_not_started(spec.name, problem, told if as_json else None))
    if as_json:
        print_json(told)
        return
    print(f"attached {spec.name}")
    for capability in found:
        mark = "exposed" if capability in exposed else "hidden"
        print(f"  {capability:<40} {mark}")
    if not exposed:
        again = replace(spec, expose=("*",))
        print(
            f"nothing is exposed to peers; to expose all: {_command(home.path, again)}"
        )


def _not_started(name: str, problem: str, told: dict[str, Any] | None) -> int:
    """Say that an attachment is saved and does not start; return the exit code.

    Args:
        told: What goes into the problem document of `--json`; None is for people.
    """
    kind = ErrorKind.CONFIGURATION
    reason = visible(" ".join(problem.split()))
    detail = (
        f"{name} is saved but does not start, so it offers nothing: {reason}; put that "
        "right, `anpd doctor` shows how it is"
    )
    print(f"anpd: {detail}", file=sys.stderr)
    if told is not None:
        title = kind.value.replace("_", " ")
        print_json(
            {
                "type": f"urn:anpd:error:{kind.value}",
                "title": title,
                "detail": detail,
                "kind": kind.value,
                **told,
            }
        )
    return EXIT_CODES[kind]


async def _try(spec: Any) -> tuple[list[str], str | None]:
    from anp.sidecar.attachments import AttachmentError, open_attachment

    attachment = open_attachment(spec)
    try:
        await attachment.start()
        return [c.name for c in attachment.capabilities()], None
    except AttachmentError as exc:
        return [], str(exc)
    finally:
        await attachment.close()


def _command(home: Path, spec: Any) -> str:
    import shlex

    words = ["anpd", "--home", str(home), "attach", spec.kind, "--name", spec.name]
    # Whatever the owner gave has to be in it, or attaching again would lose it.
    words += ["--expose", "*"]
    words += [word for k, v in spec.env.items() for word in ("--env", f"{k}={v}")]
    for option, names in (
        ("--read-only", spec.read_only),
        ("--idempotent", spec.idempotent),
        ("--conversational", spec.conversational),
    ):
        words += [word for tool in names for word in (option, tool)]
    if spec.kind == "python":
        words += ["--python", str(spec.python), "--cwd", str(spec.cwd)]
    words += ["--", *spec.command] if spec.kind == "mcp" else [spec.target]
    return shlex.join(words)


def _is_exposed(expose: tuple[str, ...], name: str) -> bool:
    return "*" in expose or name in expose or name.partition(".")[2] in expose


def _name(text: str) -> str:
    clean = "".join(c if c.isalnum() or c in "_-" else "-" for c in text).strip("-_")
    return clean or "attachment"


def _pairs(items: list[str] | None) -> dict[str, str]:
    pairs = {}
    for item in items or ():
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise CallError(ErrorKind.USAGE, f"--env {item}: write KEY=VALUE")
        pairs[key] = value
    return pairs


def load_settings(settings: Settings, flags: dict[str, Any]) -> Any:
    """Return the configuration that the options mean; ConfigError if it is broken."""
    from anp.sidecar.config import load_config

    home, given = home_of(settings)
    return load_config(
        home,
        home_given=given,
        config_file=Path(settings.config) if settings.config else None,
        flags=flags,
        environ=dict(os.environ),
        cwd=Path.cwd(),
    )


def _data(text: str) -> Any:
    if text == "-":
        text = sys.stdin.read()
    elif text.startswith("@"):
        try:
            text = Path(text[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as exc:
            raise CallError(ErrorKind.USAGE, f"-d {text}: {exc}") from exc
    try:
        # Python would take NaN and Infinity, which are no JSON.
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as exc:
        raise CallError(
            ErrorKind.USAGE, f"the data is no JSON: {exc}; give -d '{{\"key\": 1}}'"
        ) from exc


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


def _json_file(path: Path | None) -> Any:
    return None if path is None else _data(f"@{path}")
