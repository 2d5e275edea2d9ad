"""The documents for operation name what exists, all of it, and nothing else."""

from __future__ import annotations

import contextlib
import io
import json
import re
import tomllib
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from anp.cli.app import run
from anp.errors import EXIT_CODES
from anp.sidecar.config.live import LIVE
from anp.sidecar.config.load import load_config
from anp.sidecar.config.schema import default_config_text
from anp.sidecar.config.settings import Config
from anp.sidecar.home.home import Home
from anp.sidecar.telemetry.metrics import FAMILIES

ROOT = Path(__file__).parent.parent
OPERATION = (ROOT / "docs" / "operation.md").read_text("utf-8")
DOCUMENTS = {
    path.name: path.read_text("utf-8")
    for path in sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md"])
}
COMMANDS = sorted(
    {
        (name, one)
        for name, text in DOCUMENTS.items()
        for one in re.findall(r"`(anpd [a-z-][^`\n]*)`", text)
    }
)
OPTION = re.compile(r"--[a-z][a-z-]+")
METRIC = re.compile(r"\banpd_[a-z_]+\b")
SUFFIX = re.compile(r"_(bucket|sum|count)$")
MODULES = {"anpd_client"}
"Python modules whose names look like metrics."

FILES = {"identity.key"}
"Names of files that look like settings."

SETTING = re.compile(r"`([a-z]+\.[a-z_]+)(?: = [^`]*)?`")


def settings() -> set[str]:
    """Return every setting by its dotted name."""
    config = Config()
    found = set()
    for section in fields(config):
        value = getattr(config, section.name)
        if is_dataclass(value):
            found |= {f"{section.name}.{key.name}" for key in fields(value)}
    return found


def test_every_metric_is_documented_and_every_documented_one_exists() -> None:
    names = {family.name for family in FAMILIES}
    table = set(re.findall(r"^\| `(anpd_[a-z_]+)` \|", OPERATION, re.MULTILINE))
    assert table == names
    for name, text in DOCUMENTS.items():
        said = {SUFFIX.sub("", one) for one in METRIC.findall(text)} - MODULES
        assert said <= names, name


def test_every_label_is_documented() -> None:
    rows = dict(
        re.findall(r"^\| `(anpd_[a-z_]+)` \| ([^|]*) \|", OPERATION, re.MULTILINE)
    )
    for family in FAMILIES:
        assert re.findall(r"`(\w+)`", rows[family.name]) == list(family.labels)


def test_every_exit_code_is_documented_and_every_documented_one_exists() -> None:
    section = OPERATION.partition("## Exit codes")[2].partition("\n## ")[0]
    said = {
        name: int(code)
        for code, name in re.findall(r"\| (\d+) \| `([a-z_]+)`", section)
    }
    assert said == {kind.value: code for kind, code in EXIT_CODES.items()}


def test_every_live_setting_is_documented_as_one() -> None:
    section = OPERATION.partition("## Reload")[2].partition("\n## ")[0]
    sentence = section.partition("In effect at once:")[2].partition("Every other")[0]
    assert set(re.findall(r"`([a-z_.]+)`", sentence)) == LIVE


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_every_setting_that_a_document_names_exists(name: str) -> None:
    known = settings()
    sections = {one.partition(".")[0] for one in known}
    said = {
        one
        for one in SETTING.findall(DOCUMENTS[name])
        if one.partition(".")[0] in sections and one not in FILES
    }
    assert said <= known


def test_every_setting_stands_in_the_file_that_init_writes() -> None:
    text = re.sub(r"^# (?=[\w\[])", "", default_config_text(), flags=re.MULTILINE)
    shown = set()
    section = ""
    for line in text.splitlines():
        if header := re.match(r"\[([a-z0-9_]+)\]", line):
            section = header[1]
        elif line.startswith("[["):
            break
        elif key := re.match(r"([a-z_]+) = ", line):
            shown.add(f"{section}.{key[1]}")
    assert shown == settings()


@pytest.mark.parametrize(
    "table", re.findall(r"^```toml\n(.*?)^```$", OPERATION, re.DOTALL | re.MULTILINE)
)
def test_every_table_of_settings_is_accepted(table: str, tmp_path: Path) -> None:
    (tmp_path / "anpd.toml").write_text(table, "utf-8")
    config = load_config(Home(tmp_path), home_given=True, environ={})
    for section, values in tomllib.loads(table).items():
        for key, value in values.items():
            assert getattr(getattr(config, section), key) == value


@pytest.mark.parametrize(("name", "command"), COMMANDS)
def test_every_command_and_option_exists(name: str, command: str) -> None:
    words: list[str] = []
    for word in command.split()[1:]:
        # Arguments in a document are in capitals; options end the command's name.
        if not re.fullmatch(r"[a-z][a-z-]*", word):
            break
        words.append(word)
    while words:
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
            code = run([*words, "--help"])
        if code == 0:
            break
        # `anpd call shop weather`: what follows the command may be small words too.
        words.pop()
    assert words or OPTION.findall(command), f"{name}: {command}"
    own = set(OPTION.findall(shown.getvalue())) if words else set()
    everywhere = {"--home", "--config", "--debug", "--version", "--json", "--help"}
    everywhere |= {"--wide", "--install-completion"}
    assert set(OPTION.findall(command)) <= own | everywhere, f"{name}: {command}"


def test_the_schema_of_the_configuration_says_everything(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["config", "schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    for name in settings():
        section, _, key = name.partition(".")
        place = schema["properties"][section]["$ref"].rpartition("/")[2]
        entry = schema["$defs"][place]["properties"][key]
        assert entry["description"], name
        assert entry["x-anpd-reload"] == ("live" if name in LIVE else "restart"), name
        assert "default" in entry or entry["type"] == "object", name


def test_what_the_schema_refuses_the_settings_refuse(tmp_path: Path) -> None:
    import jsonschema

    from anp.errors import ConfigError
    from anp.sidecar.config.schema import config_schema

    validator = jsonschema.Draft202012Validator(config_schema())
    validator.check_schema(config_schema())
    for text in (
        "[log]\nformat = 'xml'",
        "[log]\nfromat = 'json'",
        "[listen]\nport = 70000",
        "[otel]\nsample = 2.0",
        "[[peer]]\ndid = 'did:key:z1'",
        "nonsense = 1",
    ):
        assert list(validator.iter_errors(tomllib.loads(text))), text
        (tmp_path / "anpd.toml").write_text(text, "utf-8")
        with pytest.raises(ConfigError):
            load_config(Home(tmp_path), home_given=True, environ={})
    good = tomllib.loads(default_config_text())
    assert list(validator.iter_errors(good)) == []


def test_the_security_page_is_one_page_and_names_what_holds() -> None:
    text = DOCUMENTS["security.md"]
    assert len(text.splitlines()) <= 125
    for word in ("report", "identity.key", "api.token", "policy.peers", "Landlock"):
        assert word in text
