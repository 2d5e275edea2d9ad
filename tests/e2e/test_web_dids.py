"""Two daemons with `did:wba` identities that serve their own documents over https."""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.certificates import Authority
from tests.e2e.daemons import Anpd

SOURCE = """
def twice(number: int) -> dict[str, int]:
    return {"twice": number * 2}
"""


def free_port() -> int:
    """Return a port that nobody uses now; a DID has to name one beforehand."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def made(folder: Path, name: str, authority: Authority, *create: str) -> Anpd:
    """Return a home with a `did:wba` on a port of its own, not started."""
    daemon = Anpd(folder / name)
    port = free_port()
    arguments = ("localhost", "--port", str(port), *create)
    daemon.did = daemon.ok("identity", "create", *arguments, "--json").json()["did"]
    config = daemon.home / "anpd.toml"
    certificate = authority.issue("localhost")
    text = config.read_text().replace(
        "[listen]",
        f'[listen]\nhost = "localhost"\nport = {port}\n'
        f'tls_cert = "{certificate.cert}"\ntls_key = "{certificate.key}"',
    )
    text = text.replace(
        "[fetch]",
        f'[fetch]\nallow = ["127.0.0.0/8", "::1/128"]\nca_file = "{authority.file}"',
    )
    config.write_text(text)
    return daemon


@contextlib.contextmanager
def running(daemon: Anpd) -> Iterator[Anpd]:
    """Run a daemon on the port that its DID names."""
    port = int(daemon.did.split("%3A")[1].split(":")[0])
    with daemon.up(port=port):
        yield daemon


def provide(daemon: Anpd, folder: Path) -> None:
    """Attach a function to a home, for everybody."""
    path = folder / "twice.py"
    path.write_text(SOURCE)
    arguments = (f"{path}:twice", "--expose", "*", "--read-only", "twice")
    daemon.ok("attach", "python", *arguments)


@pytest.mark.slow
@pytest.mark.parametrize(
    "create",
    [
        ("--path", "user:alice"),
        ("--key", "p256"),
        (),
    ],
    ids=["a path bound to a key", "a host with a P-256 key", "a host"],
)
def test_a_did_alone_is_enough_to_call(tmp_path: Path, create: tuple[str, ...]) -> None:
    authority = Authority(tmp_path)
    caller = made(tmp_path, "caller", authority, *create)
    provider = made(tmp_path, "provider", authority, *create)
    provide(provider, tmp_path)
    with running(provider), running(caller):
        seen = provider.ok("identity", "verify", provider.did, "--json").json()
        assert seen["bound_to_key"] == ("user:alice" in provider.did)
        assert provider.url.startswith("wss://localhost:")
        arguments = (provider.did, "twice", "-d", '{"number": 21}')
        first = caller.ok("call", *arguments, "--json").json()
        assert first["output"] == {"twice": 42}
        peers = provider.ok("peers", "list", "--json").json()["peers"]
        assert [peer["did"] for peer in peers] == [caller.did]


@pytest.mark.slow
def test_hellos_may_be_signed_by_the_key_in_the_path(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    caller = made(tmp_path, "caller", authority, "--path", "agents:one")
    provider = made(tmp_path, "provider", authority)
    provide(provider, tmp_path)
    config = caller.home / "anpd.toml"
    config.write_text(
        config.read_text().replace("[identity]", '[identity]\nsign_with = "ed25519"')
    )
    shown = caller.ok("identity", "show", "--json").json()
    assert shown["signs_with"] == f"{caller.did}#key-1"
    with running(provider), running(caller):
        arguments = (provider.did, "twice", "-d", '{"number": 4}')
        assert caller.ok("call", *arguments, "--json").json()["output"] == {"twice": 8}


@pytest.mark.slow
def test_a_changed_key_is_refused_until_the_owner_trusts_it(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    caller = made(tmp_path, "caller", authority, "--key", "p256")
    provider = made(tmp_path, "provider", authority, "--key", "p256")
    provide(provider, tmp_path)
    call = ("call", provider.did, "twice", "-d", '{"number": 21}', "--json")
    with running(caller):
        with running(provider):
            caller.ok(*call)
        # Another key under the same name, as somebody would have who took the server.
        (provider.home / "identity.key").unlink()
        port = provider.did.split("%3A")[1]
        provider.ok(
            *("identity", "create", "localhost", "--port", port),
            *("--key", "p256", "--replace"),
        )
        with running(provider):
            refused = caller.run(*call)
            assert refused.code == 5, refused
            assert "KEY OF A DID HAS CHANGED" in caller.log()
            listed = caller.ok("peers", "list").stdout
            assert "KEY CHANGED" in listed
            assert f"anpd peers trust {provider.did}" in listed
            caller.ok("peers", "trust", provider.did)
            assert caller.ok(*call).json()["output"] == {"twice": 42}
            assert "KEY CHANGED" not in caller.ok("peers", "list").stdout


@pytest.mark.slow
def test_a_key_that_the_path_vouches_for_is_changed_without_a_word_of_peers(
    tmp_path: Path,
) -> None:
    authority = Authority(tmp_path)
    caller = made(tmp_path, "caller", authority)
    provider = made(tmp_path, "provider", authority, "--path", "agents:one")
    provide(provider, tmp_path)
    call = ("call", provider.did, "twice", "-d", '{"number": 21}', "--json")
    with running(caller):
        with running(provider):
            caller.ok(*call)
        # The command says what to do, and that is what works.
        said = provider.run("identity", "rotate")
        assert said.code == 2
        (provider.home / "identity.key").unlink()
        steps = re.search(r"`anpd --home \S+ (identity create .*?)`", said.stderr)
        assert steps is not None, said.stderr
        provider.ok(*steps[1].split())
        shown = provider.ok("identity", "show", "--json").json()
        assert shown["did"] == provider.did
        with running(provider):
            assert caller.ok(*call).json()["output"] == {"twice": 42}
            assert "vouched for by its path" in caller.log()
            assert "KEY OF A DID HAS CHANGED" not in caller.log()


def test_a_did_that_is_its_key_cannot_get_another_one(tmp_path: Path) -> None:
    plain = Anpd(tmp_path / "plain")
    plain.ok("init")
    said = plain.run("identity", "rotate")
    assert said.code == 2
    assert "is made of its key, so another key is another identity" in said.stderr


@pytest.mark.slow
def test_a_certificate_of_nobody_we_know_is_refused(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    provider = made(tmp_path, "provider", authority)
    caller = made(tmp_path, "caller", authority)
    config = caller.home / "anpd.toml"
    stranger = Authority(tmp_path, "stranger")
    config.write_text(
        config.read_text().replace(str(authority.file), str(stranger.file))
    )
    with running(provider):
        refused = caller.run("identity", "verify", provider.did)
    assert refused.code == 5
    assert "certificate verify failed" in refused.stderr.lower()


def test_what_this_machine_alone_can_reach_is_not_fetched(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    provider = made(tmp_path, "provider", authority)
    caller = Anpd(tmp_path / "caller")
    with running(provider):
        refused = caller.run("identity", "verify", provider.did)
    assert refused.code == 5
    assert "on this machine" in refused.stderr
