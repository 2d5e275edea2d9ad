"""init, up, call, demo: the daemon and its calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from click import Context

from anp.cli.call import CallLine, make_call, shows_phases
from anp.cli.client import home_of, load_settings
from anp.cli.completion import complete_need, complete_peer
from anp.cli.grammar import Argument, Commands, Option
from anp.cli.options import Data, Host, Json, Port
from anp.cli.output import Line, Settings, print_one
from anp.errors import CallError, ConfigError, ErrorKind
from anp.sidecar.home.home import Home

if TYPE_CHECKING:
    from anp.sidecar.config.settings import Config

COLLECTED_AFTER = 700, 10, 2
"""Objects made, rounds over the young ones, and rounds over the middle-aged ones after
which the garbage collector looks at the next older ones."""


def register(app: Commands) -> None:
    """Add the commands of this file."""
    app.command("init")(init)
    app.command("up")(up)
    app.command("call")(call)
    app.command("demo")(demo)


def init(
    context: Context,
    method: Annotated[str, Option(help="did:key or did:all.")] = "did:key",
    as_json: Json = False,
) -> None:
    """Make keys, a DID and a configuration."""
    from anp.cli.questions import ask_all, is_asked, with_values
    from anp.identity.dids import Identities
    from anp.identity.keys import PrivateKey
    from anp.sidecar.config.schema import default_config_text
    from anp.sidecar.home.home import write_atomic

    if method not in {"did:key", "did:all"}:
        raise CallError(ErrorKind.USAGE, f"--method {method}: use did:key or did:all")
    home, _ = home_of(context.obj)
    if home.key_file.exists():
        raise ConfigError(f"{home.path} has an identity already; nothing was changed")
    has_config = home.config_file.exists()
    asked = is_asked(as_json=as_json) and not has_config
    values = ask_all() if asked else {}
    home.create()
    key = PrivateKey.create(home.key_file)
    if not has_config:
        text = with_values(default_config_text(method), values)
        write_atomic(home.config_file, text.encode())
    did = Identities.of_method(key, method).primary.did
    told: list[Line] = [
        ("home", home.path),
        ("did", did),
        "",
        f"next: anpd --home {home.path} attach … and anpd --home {home.path} up",
    ]
    print_one({"home": str(home.path), "did": did}, told, as_json=as_json)


def up(
    context: Context,
    host: Host = None,
    port: Port = None,
    a2a: Annotated[
        int | None,
        Option(
            "--a2a",
            min=0,
            max=65_535,
            metavar="PORT",
            help="Port of 127.0.0.1 for callers of A2A; 0 lets the system choose.",
        ),
    ] = None,
    a2a_gateway: Annotated[
        int | None,
        Option(
            "--a2a-gateway",
            min=0,
            max=65_535,
            metavar="PORT",
            help="Port of 127.0.0.1 for local agents that reach peers over A2A.",
        ),
    ] = None,
    ready_file: Annotated[
        Path | None,
        Option(help="File that gets url and did as JSON when the daemon is ready."),
    ] = None,
    background: Annotated[
        bool,
        Option("--background", help="Run it without this terminal; see `anpd logs`."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Run the daemon, in the foreground unless told otherwise."""
    if background:
        _up_in_background(context.obj, as_json=as_json)
        return
    import asyncio
    import gc

    # Nothing that is made while starting is garbage, and looking for some takes time.
    gc.disable()
    from sandbox.processes.launch import launch_ahead

    # They load their libraries while this process loads its own.
    launch_ahead()
    from anp.cli.logs import log_to
    from anp.sidecar.process.run import run_daemon

    settings: Settings = context.obj
    home, _ = home_of(settings)
    own, gateway = (
        None if one is None else f"127.0.0.1:{one}" for one in (a2a, a2a_gateway)
    )
    flags = {
        "listen.host": host,
        "listen.port": port,
        "a2a.listen": own,
        "a2a.gateway": gateway,
    }
    is_new = not home.key_file.exists()
    config = load_settings(settings, flags)

    def set_logs(config: Config) -> None:
        level = "debug" if settings.debug else config.log.level
        log_to(style=config.log.format, level=level)

    set_logs(config)

    def on_ready(url: str, did: str, faces: Mapping[str, str]) -> None:
        gc.freeze()
        # Often and little: a round over what many links left behind takes tens of
        # milliseconds otherwise, in which no call goes on.
        gc.set_threshold(*COLLECTED_AFTER)
        gc.enable()
        known = {"did": did, "url": url, "address": f"{url}#{did}", **faces}
        if as_json:
            print(json.dumps(known), flush=True)
        else:
            _say_ready(home, known, is_new=is_new)

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


def _up_in_background(settings: Settings, *, as_json: bool) -> None:
    """Start the same command line again, without a terminal, until it is ready."""
    from anp.cli.commands.running.background import start_in_background

    home, _ = home_of(settings)
    is_new = not home.key_file.exists()
    config = load_settings(settings)
    # A person reads this log; JSON is the default where no terminal is.
    environ = {"ANPD_LOG__FORMAT": "text"} if config.log.format == "auto" else {}
    ours = {"--background", "--json"}
    words = [word for word in settings.words if word not in ours]
    known = start_in_background(home, words, environ)
    if as_json:
        print(json.dumps(known), flush=True)
    else:
        _say_ready(home, known, is_new=is_new)


def _say_ready(home: Home, known: Mapping[str, Any], *, is_new: bool) -> None:
    if is_new:
        print(f"made a new identity in {home.path}")
    for name, found in known.items():
        if name != "url":
            print(f"{name:8} {found}", flush=True)


def call(
    context: Context,
    peer: Annotated[
        str,
        Argument(
            help="Name, DID, URL or URL#DID; left out with --find.",
            autocompletion=complete_peer,
        ),
    ] = "",
    need: Annotated[
        str,
        Argument(
            help="The need in words, a capability, or the name of a [[need]].",
            autocompletion=complete_need,
        ),
    ] = "",
    data: Data = "{}",
    find: Annotated[
        str | None,
        Option(
            metavar="CAPABILITY",
            help="Let the daemon choose among the allowed peers that publish this.",
        ),
    ] = None,
    capability: Annotated[
        str | None, Option(help="Name of the capability that NEED means in words.")
    ] = None,
    timeout: Annotated[float | None, Option(help="Seconds for the whole call.")] = None,
    input_schema: Annotated[Path | None, Option()] = None,
    output_schema: Annotated[Path | None, Option()] = None,
    trust_first_use: Annotated[bool, Option("--trust-first-use")] = False,
    mode: Annotated[str, Option(help="auto, protocol or natural-language.")] = "auto",
    protocol: Annotated[
        str | None, Option(help="URI of the published or built-in protocol to use.")
    ] = None,
    idempotency_key: Annotated[
        str | None,
        Option(help="A repeated call with the same key gets the first result."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Call a peer, and negotiate a protocol first if there is none."""
    line = CallLine(
        peer=peer,
        need=need,
        data=data,
        find=find,
        capability=capability,
        timeout=timeout,
        input_schema=input_schema,
        output_schema=output_schema,
        trust_first_use=trust_first_use,
        mode=mode,
        protocol=protocol,
        idempotency_key=idempotency_key,
        as_json=as_json,
    )
    if shows_phases(line):
        from anp.cli.commands.live import follow_call

        make_call(context.obj, line, follow_call)
    else:
        make_call(context.obj, line)


def demo(
    context: Context,
    as_json: Json = False,
    keep: Annotated[
        bool, Option(help="Keep the temporary homes of the two daemons.")
    ] = False,
) -> None:
    """Run two daemons on this machine that negotiate and call each other."""
    from anp.cli.demo.demo import run_demo

    run_demo(load_settings(context.obj), as_json=as_json, keep=keep)
