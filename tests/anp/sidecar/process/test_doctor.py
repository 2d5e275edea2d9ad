"""The findings of the doctor, its advice, and the fixes it makes itself."""

from __future__ import annotations

import os
import socket
import ssl
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import fakeredis
import pytest

from anp.errors import ConfigError
from anp.identity.keys import PrivateKey
from anp.sidecar.attachments import AttachmentSpec
from anp.sidecar.config.a2a import A2aConfig
from anp.sidecar.config.load import load_config
from anp.sidecar.config.settings import CacheConfig, Config, ListenConfig, PolicyConfig
from anp.sidecar.home.home import ApiAddress, Home
from anp.sidecar.peers.web_identity import renew_tls, server_tls
from anp.sidecar.process.doctor import (
    RELEASED,
    Clock,
    DoctorCheck,
    Level,
    examine,
    repair,
)
from cache.rows import Room
from cache.store import Store
from tests.cache.servers import fake_backend
from tests.certificates import Authority

GOOD = Clock(RELEASED + 1, synchronised=True)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return a home with a key."""
    home = Home(tmp_path / "home")
    home.create()
    PrivateKey.create(home.key_file)
    return home


def config_of(home: Home, **sections: object) -> Config:
    """Return a configuration on a free port."""
    config = load_config(
        home, home_given=True, flags={"listen.port": 0}, environ={}, cwd=home.path
    )
    return replace(config, **sections)  # type: ignore[arg-type]  # a test's sections


def found(
    home: Home, config: Config | None = None, clock: Clock = GOOD
) -> list[DoctorCheck]:
    """Return what is not good."""
    checks = examine(home, config or config_of(home), clock=clock)
    return [check for check in checks if check.level is not Level.OK]


def test_a_sound_home_has_nothing_to_say(home: Home) -> None:
    assert found(home) == []


def test_a_home_that_is_not_there_yet_is_no_fault(tmp_path: Path) -> None:
    home = Home(tmp_path / "none")
    assert found(home) == []
    assert not home.path.exists()


def test_a_key_that_others_can_read_is_mended(home: Home) -> None:
    home.key_file.chmod(0o640)
    (check,) = found(home)
    assert (check.name, check.level) == ("identity", Level.BAD)
    assert f"chmod 600 {home.key_file}" in check.fix
    assert repair([check]) == [f"chmod 600 {home.key_file}"]
    assert found(home) == []


@pytest.mark.parametrize(
    ("mode", "level"), [(0o750, Level.WARNING), (0o770, Level.BAD)]
)
def test_an_open_home_is_mended(home: Home, mode: int, level: Level) -> None:
    home.path.chmod(mode)
    (check,) = found(home)
    assert (check.name, check.level) == ("home", level)
    repair([check])
    assert found(home) == []


def test_what_a_killed_daemon_left_is_removed(home: Home) -> None:
    home.write_api(ApiAddress("/nowhere", 1, "ws://127.0.0.1:1/", "did:key:z1"))
    (check,) = found(home)
    assert (check.name, check.level) == ("leftover", Level.WARNING)
    repair([check])
    assert not home.api_file.exists()


def test_the_file_of_a_running_daemon_stays(home: Home) -> None:
    with home.lock():
        home.write_api(ApiAddress("/nowhere", 1, "ws://127.0.0.1:1/", "did:key:z1"))
        assert found(home) == []


@pytest.mark.parametrize(
    ("days", "level", "said"),
    [
        (90.0, Level.OK, "valid until"),
        (5.1, Level.WARNING, "it ends in 5 days"),
        (-1.0, Level.BAD, "it has expired"),
    ],
)
def test_the_end_of_a_certificate_is_judged(
    home: Home, tmp_path: Path, days: float, level: Level, said: str
) -> None:
    made = Authority(tmp_path).issue("agent.example", days=days)
    config = config_of(home)
    listen = replace(config.listen, tls_cert=made.cert, tls_key=made.key)
    checks = examine(home, replace(config, listen=listen), clock=GOOD)
    (check,) = [check for check in checks if check.name == "certificate"]
    assert (check.level, said in check.text) == (level, True)
    assert ("anpd reload" in check.fix) is (level is not Level.OK)


def test_a_certificate_is_read_again_for_connections_that_come(
    home: Home, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    made = authority.issue("agent.example")
    listen = replace(config_of(home).listen, tls_cert=made.cert, tls_key=made.key)
    config = config_of(home, listen=listen)
    context = server_tls(config)
    assert context is not None
    before = shown(context, authority)
    authority.issue("agent.example", days=9)
    renew_tls(config, context)
    after = shown(context, authority)
    assert before != after
    made.key.write_text("no key")
    with pytest.raises(ConfigError, match="cannot be used"):
        renew_tls(config, context)
    assert shown(context, authority) == after


def shown(context: ssl.SSLContext, authority: Authority) -> bytes | None:
    """Return the certificate that a server shows, without any network."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    trust = ssl.create_default_context(cafile=str(authority.file))
    client = trust.wrap_bio(to_client, to_server, server_hostname="agent.example")
    server = context.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for one in (client, server):
            with suppress(ssl.SSLWantReadError):
                one.do_handshake()
    return client.getpeercert(binary_form=True)


def test_a_broken_key_is_never_touched(home: Home) -> None:
    home.key_file.write_text("no key")
    (check,) = found(home)
    assert (check.name, check.level, check.can_fix) == ("identity", Level.BAD, False)
    assert repair([check]) == []
    assert home.key_file.read_text() == "no key"


@pytest.mark.parametrize(
    ("clock", "level"),
    [
        (Clock(RELEASED - 1, synchronised=True), Level.BAD),
        (Clock(RELEASED, synchronised=False), Level.WARNING),
        (Clock(RELEASED, synchronised=None), Level.OK),
    ],
)
def test_a_clock_is_judged(home: Home, clock: Clock, level: Level) -> None:
    checks = examine(home, None, clock=clock)
    (check,) = [check for check in checks if check.name == "clock"]
    assert check.level is level


def test_the_clock_of_this_system_can_be_asked() -> None:
    assert Clock.of_system().synchronised in {True, False, None}


def test_a_port_in_use_is_named(home: Home) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        config = config_of(home)
        port = other.getsockname()[1]
        config = replace(config, listen=replace(config.listen, port=port))
        (check,) = found(home, config)
    assert (check.name, check.level) == ("port", Level.BAD)
    assert f":{port}" in check.fix


def test_a_store_on_a_server_is_asked_and_its_password_not_shown(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = CacheConfig(url="redis://anpd:s3cret@127.0.0.1:1/0")
    said = ["it forgets when it is full"]
    backend = fake_backend(fakeredis.FakeServer())
    monkeypatch.setattr(backend, "check", lambda: said)

    def opened(folder: Path, *, url: str, **more: object) -> Store:
        assert url == cache.url
        return Store(backend)

    monkeypatch.setattr("anp.sidecar.process.doctor.open_store", opened)
    (check,) = found(home, config_of(home, cache=cache))
    assert (check.name, check.level) == ("store", Level.WARNING)
    assert check.text == "redis://127.0.0.1:1/0; it forgets when it is full"
    assert check.why
    assert check.fix


def test_a_port_that_the_network_reaches_needs_a_list_and_a_certificate(
    home: Home,
) -> None:
    public = ListenConfig(host="0.0.0.0", port=0)
    (check,) = found(home, config_of(home, listen=public))
    assert (check.name, check.level) == ("certificate", Level.WARNING)
    assert "listen.tls_cert" in check.fix
    # A proxy in front of it has the certificate.
    proxied = replace(public, public_url="wss://agent.example/")
    assert found(home, config_of(home, listen=proxied)) == []
    anybody = PolicyConfig(peers="any")
    (check,) = found(home, config_of(home, listen=proxied, policy=anybody))
    assert (check.name, check.level) == ("peers", Level.WARNING)
    assert "anpd peers allow" in check.fix
    # On loopback the default is the same, and reaches no further than this machine.
    assert found(home, config_of(home, policy=anybody)) == []


def test_a_public_address_of_a_port_on_loopback_is_one_of_the_network(
    home: Home,
) -> None:
    listen = ListenConfig(port=0, public_url="wss://agent.example/")
    (check,) = found(home, config_of(home, listen=listen))
    assert (check.name, check.level) == ("peers", Level.WARNING)


def test_an_open_a2a_face_is_a_warning(home: Home) -> None:
    listen = "127.0.0.1:8770"
    assert found(home, config_of(home, a2a=A2aConfig(listen=listen))) == []
    (check,) = found(home, config_of(home, a2a=A2aConfig(listen=listen, open=True)))
    assert (check.name, check.level) == ("A2A", Level.WARNING)
    assert "anpd a2a tokens add" in check.fix


def test_a_store_on_disk_is_opened_written_and_read(home: Home) -> None:
    config = config_of(home)
    Store(home.store).close()
    (check,) = [one for one in examine(home, config) if one.name == "store"]
    assert check.level is Level.OK
    assert "it takes and gives rows" in check.text
    assert "MiB free" in check.text
    assert [row for row in raw_keys(home) if row == "probe"] == []


def test_a_damaged_store_is_named_with_the_way_out(home: Home) -> None:
    config = config_of(home)
    Store(home.store).close()
    (home.store / "cache.db").write_bytes(b"no database at all" * 500)
    (check,) = [one for one in examine(home, config) if one.name == "store"]
    assert check.level is Level.BAD
    assert "is damaged" in check.text
    assert f"mv {home.store} {home.store}.damaged" in check.text


def test_a_store_with_little_room_is_a_warning(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store(home.store).close()
    room = Room(4 * 1024**2, 10 * 1024**3)
    monkeypatch.setattr(Store, "room", lambda store: room)
    (check,) = [one for one in examine(home, config_of(home)) if one.name == "store"]
    assert (check.level, "4 MiB free" in check.text) == (Level.WARNING, True)


def raw_keys(home: Home) -> list[str]:
    with Store(home.store) as store:
        return store._database.read(lambda rows: rows.keys(""))


def test_a_store_that_cannot_be_reached_is_bad(home: Home) -> None:
    cache = CacheConfig(url="redis://anpd:s3cret@127.0.0.1:1/0")
    (check,) = found(home, config_of(home, cache=cache))
    assert (check.name, check.level) == ("store", Level.BAD)
    assert "cannot be reached" in check.text
    assert "s3cret" not in repr(check)


def test_a_program_that_is_not_there_is_named(home: Home, tmp_path: Path) -> None:
    specs = (
        AttachmentSpec(kind="mcp", name="a", command=("no-such-program",)),
        AttachmentSpec(kind="mcp", name="b", command=("ls",), cwd=tmp_path / "no"),
        AttachmentSpec(kind="mcp", name="c", command=("ls",), expose=("*",)),
    )
    names = [check.name for check in found(home, config_of(home, attach=specs))]
    assert names == ["attach a", "attach b"]


def test_a_broken_file_of_an_attachment_is_named(home: Home) -> None:
    (home.attachments / "odd.json").write_text("{")
    (check,) = found(home)
    assert (check.name, check.level) == ("attachments", Level.BAD)


def test_every_finding_says_what_why_and_how(home: Home) -> None:
    home.key_file.chmod(0o644)
    os.chmod(home.path, 0o777)
    config = config_of(home)
    config = replace(
        config,
        llm=replace(config.llm, model="made-up", api_key_env="ANPD_TEST_NO_SUCH_KEY"),
    )
    checks = found(home, config, Clock(0.0, synchronised=False))
    assert {"home", "identity", "clock", "model"} <= {one.name for one in checks}
    assert all(check.text and check.why and check.fix for check in checks)
