"""Two daemons, one call: the main job, by hand."""

from __future__ import annotations

import hashlib
import json
import random
import string
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.clauses import clause
from tests.e2e.daemons import Anpd


def word(length: int = 8) -> str:
    """Return a random lower-case word."""
    return "".join(random.choices(string.ascii_lowercase, k=length))


@dataclass(frozen=True)
class Function:
    """A function made up for one test."""

    name: str
    number: str
    text: str
    result: str
    factor: int

    def source(self, number_type: str = "int") -> str:
        return (
            "from typing import TypedDict\n\n\n"
            "class Answer(TypedDict):\n"
            f"    {self.result}: str\n\n\n"
            f"def {self.name}({self.number}: {number_type}, {self.text}: str)"
            " -> Answer:\n"
            f'    """Say {self.name}."""\n'
            f"    print('this must not reach the channel')\n"
            f"    return {{{self.result!r}: f'{{{self.text}}}-"
            f"{{{self.number} * {self.factor}}}'}}\n"
        )


@pytest.fixture
def function() -> Function:
    return Function(f"do_{word()}", word(), word(), word(), random.randint(2, 99))


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Anpd, Anpd]]:
    caller, provider = Anpd(tmp_path / "caller"), Anpd(tmp_path / "provider")
    with provider.up(), caller.up():
        yield caller, provider


def attach(daemon: Anpd, folder: Path, function: Function, module: str = "mod") -> None:
    (folder / f"{module}.py").write_text(function.source())
    daemon.ok(
        *("attach", "python", f"{module}:{function.name}", "--expose", "*"),
        *("--name", module),
        cwd=folder,
    )


@pytest.mark.slow
@clause("ANP-3", "ANP-84", "ANP-86")
def test_a_call_is_negotiated_once_and_then_goes_through_the_agreement(
    pair: tuple[Anpd, Anpd], tmp_path: Path, function: Function
) -> None:
    caller, provider = pair
    attach(provider, tmp_path, function)
    number, text = random.randint(1, 10**6), word()
    call = (
        *("call", provider.address, function.name.replace("_", " ").title()),
        *("-d", json.dumps({function.number: number, function.text: text}), "--json"),
    )
    first = caller.ok(*call).json()
    expected = {function.result: f"{text}-{number * function.factor}"}
    assert first["output"] == expected
    assert first["source"] == "negotiated"
    assert first["negotiation_messages"] > 0
    second = caller.ok(*call).json()
    assert second["output"] == expected
    assert second["source"] == "agreement"
    assert second["negotiation_messages"] == 0
    assert second["llm_calls"] == 0
    assert second["protocol"] == first["protocol"]
    port = provider.port
    for daemon in pair:
        daemon.stop()
    provider.start(port=port)
    caller.start()
    third = caller.ok(*call).json()
    assert (third["output"], third["source"]) == (expected, "agreement")
    assert third["negotiation_messages"] == 0


@pytest.mark.slow
@clause("ANP-85", "ANP-88")
def test_the_shown_document_has_the_hash_it_is_shown_under(
    pair: tuple[Anpd, Anpd], tmp_path: Path, function: Function
) -> None:
    caller, provider = pair
    attach(provider, tmp_path, function)
    data = json.dumps({function.number: 1, function.text: "ä"})
    call = ("call", provider.address, function.name, "-d", data, "--json")
    digest = caller.ok(*call).json()["protocol"]
    for daemon in pair:
        text = daemon.ok("protocols", "show", digest, "--text").stdout
        assert hashlib.sha256(text.encode()).hexdigest() == digest


@pytest.mark.slow
def test_a_schema_that_does_not_fit_is_rejected_with_the_reason(
    pair: tuple[Anpd, Anpd], tmp_path: Path, function: Function
) -> None:
    caller, provider = pair
    attach(provider, tmp_path, function)
    data = json.dumps({function.number: "not a number", function.text: "x"})
    ended = caller.run("call", provider.address, function.name, "-d", data)
    # Other data would do, so it is the caller's error.
    assert ended.code == 2
    assert f'{function.number} has to be an integer, not "not a number"' in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.slow
def test_two_calls_in_opposite_directions_share_one_link(
    pair: tuple[Anpd, Anpd], tmp_path: Path, function: Function
) -> None:
    caller, provider = pair
    other = Function(f"do_{word()}", word(), word(), word(), 7)
    attach(provider, tmp_path, function, "one")
    attach(caller, tmp_path, other, "two")
    there = json.dumps({function.number: 2, function.text: "x"})
    back = json.dumps({other.number: 3, other.text: "y"})
    went = caller.ok("call", provider.address, function.name, "-d", there, "--json")
    came = provider.ok("call", caller.address, other.name, "-d", back, "--json")
    assert went.json()["output"] == {function.result: f"x-{2 * function.factor}"}
    assert came.json()["output"] == {other.result: "y-21"}
    for daemon in pair:
        assert daemon.ok("doctor", "--json").json()["info"]["connections"] == 1


@pytest.mark.slow
def test_doctor_and_info_name_the_same_isolation_layer_by_layer(
    pair: tuple[Anpd, Anpd],
) -> None:
    daemon, _ = pair
    told = daemon.ok("doctor", "--json").json()
    running = told["info"]["sandbox"]
    assert running["level"] in {"full", "full-no-landlock", "reduced"}
    measured = {check["check"]: check["detail"] for check in told["checks"]}
    assert measured["isolation"].startswith(f"{running['level']}:")
    for layer in running["layers"]:
        line = measured[f"  layer {layer['name']}"]
        assert line.startswith("active" if layer["active"] else "inactive")
    names = {layer["name"] for layer in running["layers"]}
    assert {"seccomp", "landlock"} <= names
    active = {layer["name"] for layer in running["layers"] if layer["active"]}
    # Who is no root has no uid to drop, and loses nothing by it.
    assert (running["level"] == "full") == (names - active <= {"uid"})


@pytest.mark.slow
@clause("ANP-87")
def test_after_a_schema_change_the_old_hash_is_declined_and_a_new_one_agreed(
    pair: tuple[Anpd, Anpd], tmp_path: Path, function: Function
) -> None:
    caller, provider = pair
    attach(provider, tmp_path, function)
    call = ("call", provider.address, function.name, "--json", "-d")
    data = {function.number: 5, function.text: "x"}
    first = caller.ok(*call, json.dumps(data)).json()
    (tmp_path / "mod.py").write_text(function.source("str"))
    attach_again = ("attach", "python", f"mod:{function.name}", "--expose", "*")
    provider.ok(*attach_again, "--name", "mod", cwd=tmp_path)
    ended = caller.run(*call, json.dumps(data))
    assert ended.code == 2, "an integer is decoded by nothing any more"
    changed = {function.number: "5", function.text: "x"}
    second = caller.ok(*call, json.dumps(changed)).json()
    assert second["source"] == "negotiated"
    assert second["protocol"] != first["protocol"]
    assert second["output"] == {function.result: f"x-{'5' * function.factor}"}


@pytest.mark.slow
@clause("ANP-94", "ANP-95", "GBZ-2", "GBZ-3")
def test_a_stranger_calls_what_was_published_with_one_command(
    tmp_path: Path, function: Function
) -> None:
    uri = f"https://protocols.example/{function.name}/1.0"
    provider, first = Anpd(tmp_path / "provider"), Anpd(tmp_path / "first")
    stranger = Anpd(tmp_path / "stranger", consensus__use="true")
    with provider.up(), first.up(), stranger.up():
        attach(provider, tmp_path, function)
        data = json.dumps({function.number: 2, function.text: "x"})
        call = ("call", provider.address, function.name, "-d", data, "--json")
        agreed = first.ok(*call).json()
        assert agreed["source"] == "negotiated"
        publish = ("protocols", "publish", agreed["protocol"][:12], "--uri", uri)
        shown = provider.ok(*publish, "--json").json()
        assert (shown["uri"], shown["hash"]) == (uri, agreed["protocol"])
        known = provider.ok("protocols", "published", "--json").json()["protocols"]
        assert {one["uri"]: one["published"] for one in known}[uri] is True
        met = stranger.ok(*call, "--protocol", uri).json()
        assert met["output"] == agreed["output"]
        assert (met["source"], met["uri"]) == ("consensus", uri)
        assert met["protocol"] == agreed["protocol"]
        assert met["negotiation_messages"] == met["llm_calls"] == 0
        port = provider.port
        provider.stop()
        provider.start(port=port)
        again = provider.ok("protocols", "published", "--json").json()["protocols"]
        assert {one["uri"]: one["published"] for one in again}[uri] is True
        assert stranger.ok(*call).json()["source"] == "agreement"
        provider.ok("protocols", "unpublish", "--uri", uri)
        left = provider.ok("protocols", "published", "--json").json()["protocols"]
        assert uri not in {one["uri"] for one in left}
        ended = provider.run("protocols", "unpublish", "--uri", uri)
        assert (ended.code, ended.stderr.count("\n")) == (2, 1)
        assert "was not published" in ended.stderr
