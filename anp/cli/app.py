"""The root of all commands, with the global options."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import click
from click import Context

from anp.cli.grammar import Option, parameters_of, with_context
from anp.cli.output import Settings, fail, guarded, show_wide
from anp.cli.words import RootGroup
from anp.errors import EXIT_CODES, ErrorKind

WIDE = "--wide"


def _root(
    context: Context,
    home: Annotated[
        str | None, Option(help="Folder with everything of one daemon.")
    ] = None,
    config: Annotated[str | None, Option(help="Configuration file.")] = None,
    debug: Annotated[bool, Option(help="Show tracebacks and debug logs.")] = False,
    wide: Annotated[
        bool, Option("--wide", help="Tables and DIDs in their whole width.")
    ] = False,
) -> None:
    settings: Settings = context.obj
    settings.home, settings.config, settings.debug = home, config, debug
    if wide:
        show_wide()
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.DEBUG if debug else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    for noisy in (*("httpx2", "httpcore2", "openai"), *("asyncio", "uvicorn.error")):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def _eager(flag: str, help: str, act: Callable[[], None]) -> click.Option:
    """Return an option that does something in place of a command."""

    def callback(context: Context, parameter: click.Parameter, wanted: bool) -> None:
        if wanted and not context.resilient_parsing:
            act()
            raise click.exceptions.Exit

    return click.Option(
        [flag],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=callback,
        help=help,
    )


def _version() -> None:
    from anp.version import daemon_version

    print(f"anpd {daemon_version()}")


def _install_completion() -> None:
    from anp.cli.completion import install_completion, shell_of

    path = install_completion(app, shell_of(), Path.home())
    print(f"wrote {path}; a new shell completes words of anpd")


def _show_completion() -> None:
    from anp.cli.completion import completion_script, shell_of

    print(completion_script(app, shell_of()))


app = RootGroup(
    name="anpd",
    help="A sidecar that lets any two AI agents talk to each other.",
    params=[
        *parameters_of(_root),
        _eager("--version", "Print the version.", _version),
        _eager(
            "--install-completion",
            "Have your shell complete commands, peers and capabilities.",
            _install_completion,
        ),
        _eager("--show-completion", "Print what that writes.", _show_completion),
    ],
    callback=with_context(_root),
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
"The command `anpd`."


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    # The words behind `--` are a command of the owner's.
    end = [*arguments, "--"].index("--")
    ours, rest = list(arguments)[:end], list(arguments)[end:]
    settings = Settings(json="--json" in ours, words=tuple(arguments))
    if WIDE in ours:
        # It is typed behind the command, too.
        arguments = [WIDE, *(one for one in ours if one != WIDE), *rest]

    out = sys.stdout

    def work() -> int:
        try:
            result = app.main(
                list(arguments), prog_name="anpd", standalone_mode=False, obj=settings
            )
        except click.ClickException as exc:
            return _usage(settings, exc)
        except click.Abort:
            raise KeyboardInterrupt from None
        except SystemExit:
            if sys.stdout is not out:
                # So the library ends when nobody reads on; see `anp/__main__.py`.
                raise BrokenPipeError from None
            raise
        return result if isinstance(result, int) else 0

    return guarded(settings, work)


def _usage(settings: Settings, exc: click.ClickException) -> int:
    """Say what is wrong with the words of the command line."""
    context = getattr(exc, "ctx", None)
    where = context.command_path if context else "anpd"
    # A group without a command gets its help, as `anpd` alone does.
    if type(exc).__name__ == "NoArgsIsHelpError" and context and not settings.json:
        print(context.get_help(), file=sys.stderr)
        return EXIT_CODES[ErrorKind.USAGE]
    message = exc.format_message() if hasattr(exc, "format_message") else str(exc)
    detail = f"{message.rstrip('.')}; see `{where} --help`"
    return fail(settings, ErrorKind.USAGE, detail)
