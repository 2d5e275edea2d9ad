"""init, up, call, demo: the daemon and what it does."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anp.cli.client import Client, home_of
from anp.cli.output import Settings, print_json
from anp.errors import CallError, ConfigError, ErrorKind

if TYPE_CHECKING:
    from anp.sidecar.config.settings import Config

__all__ = ["load_settings", "read_data", "register"]

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("init")(init)
    app.command("up")(up)
    app.command("call")(call)
    app.command("demo")(demo)


def init(
    context: typer.Context,
    method: Annotated[str, typer.Option(help="did:key or did:all.")] = "did:key",
    as_json: Json = False,
) -> None:
    """Make keys, a DID and a configuration."""
    from anp.identity.dids import Identities
    from anp.identity.keys import PrivateKey
    from anp.sidecar.config.schema import default_config_text
    from anp.sidecar.home.home import write_atomic

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
    import gc

    # Nothing that is made while starting is garbage, and looking for some takes time.
    gc.disable()
    from anp.cli.logs import log_to
    from anp.sidecar.process.run import run_daemon

    settings: Settings = context.obj
    home, _ = home_of(settings)
    flags: dict[str, Any] = {}
    if host is not None:
        flags["listen.host"] = host
    if port is not None:
        flags["listen.port"] = port
    is_new = not home.key_file.exists()
    config = load_settings(settings, flags)

    def set_logs(config: Config) -> None:
        level = "debug" if settings.debug else config.log.level
        log_to(style=config.log.format, level=level)

    set_logs(config)

    def on_ready(url: str, did: str) -> None:
        gc.freeze()
        gc.enable()
        if as_json:
            known = {"did": did, "url": url, "address": f"{url}#{did}"}
            print(json.dumps(known), flush=True)
            return
        if is_new:
            print(f"made a new identity in {home.path}")
        print(f"did      {did}\naddress  {url}#{did}", flush=True)

    asyncio.run(
        run_daemon(
            home,
            config,
            ready_file=ready_file,
            on_ready=on_ready,
            load=lambda: load_settings(settings, flags),
            on_config=set_logs,
        )
    )


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
    protocol: Annotated[
        str | None, typer.Option(help="URI of a consensus protocol to offer first.")
    ] = None,
    idempotency_key: Annotated[
        str | None,
        typer.Option(help="A call repeated with it gets the first one's result."),
    ] = None,
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
    body: dict[str, Any] = {"peer": peer, "task": wanted, "input": read_data(data)}
    body |= {"mode": mode, "trust_first_use": trust_first_use}
    if timeout is not None:
        body["timeout"] = timeout
    if protocol is not None:
        body["protocol"] = protocol
    if idempotency_key is not None:
        body["idempotency_key"] = idempotency_key
    client = Client(home_of(context.obj)[0])
    if sys.stderr.isatty() and not as_json:
        from anp.cli.commands.live import follow_call

        answer = follow_call(client, body)
    else:
        answer = client.call(body)
    if as_json:
        print_json(answer)
        return
    print_json(answer["output"])
    print(
        f"{answer['source']} {(answer['protocol'] or '-')[:12]} "
        f"negotiation_messages={answer['negotiation_messages']} ms={answer['ms']}",
        file=sys.stderr,
    )


def demo(
    context: typer.Context,
    as_json: Json = False,
    keep: Annotated[bool, typer.Option(help="Keep the temporary homes.")] = False,
) -> None:
    """Let two agents meet on this machine."""
    from anp.cli.demo.demo import run_demo

    run_demo(as_json=as_json, keep=keep)


def load_settings(settings: Settings, flags: dict[str, Any]) -> Any:
    """Return the configuration that the options mean; ConfigError if it is broken."""
    from anp.sidecar.config.load import load_config

    home, given = home_of(settings)
    return load_config(
        home,
        home_given=given,
        config_file=Path(settings.config) if settings.config else None,
        flags=flags,
        environ=dict(os.environ),
        cwd=Path.cwd(),
    )


def read_data(text: str) -> Any:
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
    return None if path is None else read_data(f"@{path}")
