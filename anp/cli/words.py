"""The first words of a command line, and the file that each is loaded from.

Loading every command takes longer than most commands run, so each is loaded when it is
asked for. The list of all, as `anpd --help` prints it, comes from the table here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import click
from click import Context

from anp.cli.grammar import Commands, OrderedGroup


@dataclass(frozen=True, slots=True)
class Word:
    """A command, or a group of commands."""

    file: str
    "Module below the package of commands; its `register` adds this word."

    summary: str
    "First sentence of the command's help."


WORDS: Final[Mapping[str, Word]] = {
    "init": Word("daemon", "Make keys, a DID and a configuration."),
    "up": Word("daemon", "Run the daemon, in the foreground unless told otherwise."),
    "status": Word(
        "running.status",
        "Show if a daemon runs, its peers, what it exposes, and what waits for you.",
    ),
    "logs": Word(
        "running.background",
        "Print the log of a daemon that was started with `up --background`.",
    ),
    "stop": Word(
        "running.background", "Stop the daemon, after the calls that are under way."
    ),
    "decide": Word(
        "running.decisions",
        "List all that waits for your decision, or accept or reject one of it.",
    ),
    "call": Word(
        "daemon", "Call a peer, and negotiate a protocol first if there is none."
    ),
    "demo": Word(
        "daemon", "Run two daemons on this machine that negotiate and call each other."
    ),
    "attach": Word("attachments", "Attach the programs of your agent."),
    "attachments": Word("attachments", "Attached programs: list, remove."),
    "capabilities": Word("attachments", "Attached capabilities: list, show, test."),
    "expose": Word(
        "exposure", "Let peers call capabilities of an attachment that runs."
    ),
    "hide": Word(
        "exposure",
        "Let peers call capabilities no longer, and end what they do with them.",
    ),
    "identity": Word("identity", "The DIDs and keys of this daemon."),
    "negotiations": Word("live", "Negotiations, and your decisions about them."),
    "approvals": Word(
        "live",
        "Negotiations, invitations into groups and applications that wait for you.",
    ),
    "tap": Word("calls", "Print each call as it ends, made or served, until Ctrl-C."),
    "calls": Word("calls", "Calls that your agent made and served."),
    "tasks": Word("tasks.tasks", "Work of peers that lasts, streams and asks back."),
    "sessions": Word("tasks.sessions", "Conversations that tasks belong to."),
    "subscriptions": Word(
        "tasks.subscriptions", "Tasks that times, events and places start."
    ),
    "groups": Word("groups", "Groups of agents that hear one another in one order."),
    "a2a": Word("a2a", "Callers of the A2A face."),
    "mcp": Word(
        "servers", "Serve MCP on stdio, for the configuration of an MCP client."
    ),
    "run": Word(
        "servers", "Run a command with a daemon beside it, and end both together."
    ),
    "protocols": Word(
        "protocol_actions", "Agreed protocols: list, show, revoke, test, export."
    ),
    "peers": Word("peers", "Known peers and their rights."),
    "spend": Word(
        "spend", "Show model calls, tokens and cost by day (UTC), peer and step."
    ),
    "config": Word("configuration", "The configuration."),
    "reload": Word(
        "operation",
        "Have a running daemon read its configuration and attachments again.",
    ),
    "health": Word(
        "operation", "Check a daemon: exit code 0 if it can take calls, otherwise 4."
    ),
    "doctor": Word(
        "operation",
        "Check this machine, the home and the daemon, and print a repair for each "
        "fault.",
    ),
    "dashboard": Word(
        "operation",
        "Print a link that opens the dashboard in one browser of this machine, once.",
    ),
}
"All commands, in the order in which help lists them."


class RootGroup(OrderedGroup):
    """The command `anpd`, which loads the commands below it when they are asked for."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**(settings | {"commands": None}))
        self.commands = _Commands()

    def format_commands(self, ctx: Context, formatter: click.HelpFormatter) -> None:
        """List the commands with their summaries, without loading any."""
        limit = formatter.width - 6 - max(map(len, WORDS))
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (
                        name,
                        click.Command(name, help=word.summary).get_short_help_str(
                            limit
                        ),
                    )
                    for name, word in WORDS.items()
                ]
            )


def _command(name: str, word: Word) -> click.Command:
    return click.Command(name, help=word.summary)


class _Commands(MutableMapping[str, Any]):
    """All commands by their first words; each is loaded when it is read."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            loaded = Commands()
            file = f"anp.cli.commands.{WORDS[name].file}"
            import_module(file).register(loaded)
            self._loaded |= loaded.made
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(WORDS)

    def __len__(self) -> int:
        return len(WORDS)
