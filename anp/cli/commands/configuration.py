"""config: the settings, their files and their errors."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click import Context

from anp.cli.client import home_of, load_settings
from anp.cli.grammar import Commands
from anp.cli.options import Json
from anp.cli.output import Settings, print_json, print_one, progress

if TYPE_CHECKING:
    from anp.sidecar.config.settings import Config

config_app = Commands(help="The configuration.")


def register(app: Commands) -> None:
    """Add the commands of this file."""
    app.add(config_app, "config")


@config_app.command("show")
def show_config(context: Context, as_json: Json = False) -> None:
    """Show every setting in effect, defaults included, without secrets."""
    shown = _shown(load_settings(context.obj))
    print_one(shown, _told(shown), as_json=as_json)
    if home_of(context.obj)[0].is_running():
        progress(
            "a daemon runs in this home: for it the options of its `anpd up` count, "
            "its environment, and the files as they were at its start or last reload"
        )


def _told(shown: dict[str, Any]) -> Iterator[str]:
    """Give the settings as lines, the arrays by the names of their entries."""
    for section, content in shown.items():
        if isinstance(content, list):
            yield from (f"[[{section}]]  {entry['name']}" for entry in content)
            continue
        yield f"[{section}]"
        for key, value in content.items():
            said = json.dumps(value, ensure_ascii=False)
            yield f"# {key} is not set" if value is None else f"{key} = {said}"
        yield ""


@config_app.command("check")
def check_config(context: Context, as_json: Json = False) -> None:
    """Check the configuration, and print the first error."""
    load_settings(context.obj)
    print_one({"ok": True}, ["the configuration has no errors"], as_json=as_json)


@config_app.command("path")
def config_path(context: Context, as_json: Json = False) -> None:
    """List the configuration files, weakest first, and which of them exist."""
    from anp.sidecar.config.load import config_files

    settings: Settings = context.obj
    home, given = home_of(settings)
    files = config_files(
        home,
        home_given=given,
        config_file=Path(settings.config) if settings.config else None,
        cwd=Path.cwd(),
        environ=dict(os.environ),
    )
    known = [{"path": str(path), "exists": path.is_file()} for path in files]
    told = [("found" if one["exists"] else "absent", one["path"]) for one in known]
    print_one({"files": known}, told, as_json=as_json)


@config_app.command("schema")
def show_schema() -> None:
    """Print the JSON Schema of `anpd.toml`, for editors."""
    from anp.sidecar.config.schema import config_schema

    print_json(config_schema())


def _shown(config: Config) -> dict[str, Any]:
    """Return the configuration as JSON, with what counts where nothing is set."""
    from anp.sidecar.minds.models import model_place

    known = {
        section.name: _plain(getattr(config, section.name))
        for section in fields(config)
        if is_dataclass(getattr(config, section.name))
    }
    known["policy"]["peers"] = config.peers_policy
    known["consensus"]["publish"] = config.publishes
    # The address for prompts is shown also when it is the default.
    known["llm"]["base_url"] = model_place(config.llm)
    known["cache"]["url"] = config.cache.shown_url
    known["llm"]["headers"] = dict.fromkeys(config.llm.headers, "***")
    return {
        **known,
        "need": [_plain(need) for need in config.need],
        "group": [_plain(group) for group in config.group],
        "peer": [_plain(peer) for peer in config.peer],
        # Commands and variables of attachments often hold keys.
        "attach": [
            {"name": spec.name, "kind": spec.kind, "expose": list(spec.expose)}
            for spec in config.attach
        ],
    }


def _plain(section: Any) -> dict[str, Any]:
    return {
        key: str(value) if isinstance(value, Path) else value
        for key, value in asdict(section).items()
    }
