"""The home of a daemon: modes, lock, addresses, atomic files."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import anp.sidecar.home.home
from anp.errors import CallError, ConfigError, ErrorKind
from anp.sidecar.home.home import (
    MAX_API_FILE,
    ApiAddress,
    Home,
    OwnerAddress,
    find_home,
    write_atomic,
    write_ready_file,
)
from anp.sidecar.home.ownership import MAX_SOCKET_PATH, other_writers, user_name

ADDRESS = ApiAddress(
    socket="/run/api.sock", pid=7, url="ws://127.0.0.1:1/#did:key:z", did="did:key:z"
)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_home_is_for_its_owner_only(tmp_path: Path) -> None:
    home = Home(tmp_path / "deep" / "home")
    home.create()
    home.create()
    assert mode(home.path) == 0o700
    assert mode(home.attachments) == 0o700
    assert list(home.path.iterdir()) == [home.attachments]


def test_a_home_that_others_can_write_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(ConfigError, match="chmod 700"):
        Home(folder).create()


@pytest.mark.parametrize(
    ("name", "mode", "said"),
    [
        ("anpd.toml", 0o606, "chmod go-w .*anpd.toml"),
        ("attachments/shop.toml", 0o620, "its group .*chmod go-w .*shop.toml"),
        ("", 0o770, "its group .*chmod 700"),
        ("..", 0o777, "can be written by everybody.*chmod o-w"),
    ],
)
def test_what_others_can_write_in_a_home_is_refused_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, mode: int, said: str
) -> None:
    home = Home(tmp_path / "above" / "home")
    home.create()
    path = home.path / name
    if path.suffix:
        path.write_text("")
    gid = os.getgid()
    monkeypatch.setattr("os.getegid", lambda: gid + 1)
    home.create()
    path.chmod(mode)
    with pytest.raises(ConfigError, match=said):
        home.create()


def test_a_home_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home")
    home.create()
    if os.getuid() == 0:
        os.chown(home.path, 4321, -1)
    monkeypatch.setattr("os.geteuid", lambda: 1234)
    with pytest.raises(ConfigError, match="belongs to another user"):
        home.create()


def test_root_is_told_to_act_as_the_owner_of_a_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home")
    home.create()
    if os.getuid() == 0:
        os.chown(home.path, 4321, -1)
    owner = user_name(home.path.stat().st_uid)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    (found,) = home.exposed()
    assert found.fix == f"sudo -u {owner} env ANPD_HOME={home.path} anpd …"
    assert f"belongs to the user {owner}" in str(found)
    assert "chown" not in str(found)


def test_the_end_of_a_daemon_says_what_it_cut_off(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.create()
    with home.lock():
        assert home.calls_cut() is None
        home.note_end(2)
        assert home.is_running()
    assert home.calls_cut() == 2
    with home.lock():
        assert home.calls_cut() is None


def test_the_private_group_of_our_user_is_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home")
    home.create()
    status = home.path.stat()
    # A volume under `fsGroup: 10001` for the user 10001.
    made = os.stat_result((0o42770, *status[1:4], 10001, 10001, *status[6:]))
    assert "its group" in other_writers(made)
    monkeypatch.setattr("os.geteuid", lambda: 10001)
    monkeypatch.setattr("os.getegid", lambda: 10001)
    assert other_writers(made) == ""
    others = os.stat_result((0o40707, *status[1:4], 10001, 10001, *status[6:]))
    assert "others" in other_writers(others)


def test_a_full_disk_does_not_hide_the_daemon_from_its_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home")
    home.create()
    runtime = tmp_path / "r"
    runtime.mkdir(mode=0o700)
    write = anp.sidecar.home.home.write_atomic

    def full(path: Path, data: bytes) -> None:
        if path.parent == home.path:
            raise CallError(ErrorKind.LOCAL_RESOURCE, "full") from OSError(
                errno.ENOSPC, "no space"
            )
        write(path, data)

    monkeypatch.setattr("anp.sidecar.home.home.write_atomic", full)
    home.write_api(ADDRESS, {"XDG_RUNTIME_DIR": str(runtime)})
    with home.lock():
        assert home.read_api() == ADDRESS
    home.remove_api()
    assert not home.api_file.is_symlink()
    assert [path for path in runtime.rglob("*") if path.is_file()] == []


def test_a_home_that_cannot_be_made_names_the_flag(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="--home DIR"):
        Home(tmp_path / "file" / "home").create()


def test_a_second_daemon_in_one_home_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert not home.is_running()
    with home.lock():
        assert home.is_running()
        with pytest.raises(CallError) as caught, home.lock():
            pass
        assert caught.value.kind is ErrorKind.LOCAL_RESOURCE
    assert not home.is_running()
    with home.lock():
        pass


def test_a_killed_daemon_lets_go_of_its_home(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from anp.sidecar.home.home import Home\n"
        "with Home(Path(sys.argv[1])).lock():\n"
        "    print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        assert Home(tmp_path).is_running()
        child.kill()
        child.wait()
    assert not Home(tmp_path).is_running()


def test_the_address_of_a_running_daemon_is_read_back(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with home.lock():
        home.write_api(ADDRESS)
        assert home.read_api() == ADDRESS
        assert mode(home.api_file) == 0o600
        home.remove_api()
        home.remove_api()
        with pytest.raises(CallError, match="no daemon runs"):
            home.read_api()


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b'{"socket": 1, "x": 2}', b"\xff"]
)
def test_a_broken_address_file_means_unreachable(
    tmp_path: Path, content: bytes
) -> None:
    home = Home(tmp_path)
    home.api_file.write_bytes(content)
    with home.lock(), pytest.raises(CallError) as caught:
        home.read_api()
    assert caught.value.kind is ErrorKind.DAEMON_UNREACHABLE
    assert f"anpd --home {tmp_path} up" in caught.value.detail


def test_the_owners_address_is_read_back_and_goes_with_the_other(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path)
    home.write_owner(OwnerAddress("/owner/api.sock", "secret"))
    assert mode(home.owner_file) == 0o600
    assert home.read_owner() == OwnerAddress("/owner/api.sock", "secret")
    home.remove_api()
    with pytest.raises(CallError, match="cannot be read: No such file"):
        home.read_owner()


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"token": "x"}', b"\xff"])
def test_a_broken_owners_file_says_so(tmp_path: Path, content: bytes) -> None:
    home = Home(tmp_path)
    home.owner_file.write_bytes(content)
    with pytest.raises(CallError, match="it holds no address") as caught:
        home.read_owner()
    assert caught.value.kind is ErrorKind.POLICY


def test_the_owners_socket_has_a_folder_of_its_own(tmp_path: Path) -> None:
    for home in (Home(tmp_path), Home(tmp_path / ("x" * 120))):
        home.path.mkdir(exist_ok=True)
        ours, others = home.owner_socket_path(), home.socket_path()
        assert ours.parent != others.parent
        assert others.parent not in ours.parents
        assert mode(ours.parent) == 0o700
        assert len(os.fsencode(ours)) <= MAX_SOCKET_PATH


@pytest.mark.parametrize("too_long", [False, True])
def test_an_address_file_is_read_up_to_its_limit(
    tmp_path: Path, too_long: bool
) -> None:
    home = Home(tmp_path)
    home.write_api(ADDRESS)
    data = home.api_file.read_bytes().rstrip()
    home.api_file.write_bytes(b" " * (MAX_API_FILE - len(data) + too_long) + data)
    with home.lock():
        if too_long:
            with pytest.raises(CallError):
                home.read_api()
        else:
            assert home.read_api() == ADDRESS


def test_the_address_of_a_killed_daemon_means_unreachable(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with home.lock():
        home.write_api(ADDRESS)
    with pytest.raises(CallError, match="the daemon is gone"):
        home.read_api()


@pytest.fixture
def short() -> Iterator[Path]:
    """Return a folder whose path is short enough for a socket, unlike `tmp_path`."""
    with tempfile.TemporaryDirectory(prefix="anpd-") as folder:
        yield Path(folder)


def test_a_socket_lies_in_the_home_while_its_path_is_short(short: Path) -> None:
    runtime = short / "run"
    runtime.mkdir(mode=0o700)
    missing = MAX_SOCKET_PATH - len(os.fsencode(short / "x" / "run" / "api.sock"))
    for extra, inside in ((0, True), (1, False)):
        home = Home(short / ("x" * (1 + missing + extra)))
        home.create()
        path = home.socket_path({"XDG_RUNTIME_DIR": str(runtime)})
        assert path.is_relative_to(home.path if inside else runtime)
        assert len(os.fsencode(path)) <= MAX_SOCKET_PATH
        assert mode(path.parent) == 0o700


def test_two_long_homes_get_two_sockets(short: Path) -> None:
    runtime = {"XDG_RUNTIME_DIR": str(short)}
    one, two = (Home(short / (letter * 90)) for letter in "ab")
    assert one.socket_path(runtime) == one.socket_path(runtime)
    assert one.socket_path(runtime) != two.socket_path(runtime)


def test_without_a_runtime_folder_the_temporary_one_is_used(
    short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(short))
    home = Home(short / ("x" * 100))
    for environ in ({}, {"XDG_RUNTIME_DIR": str(short / ("y" * 100))}):
        assert home.socket_path(environ).parents[1] == short / f"anpd-{os.getuid()}"


def test_a_runtime_folder_that_others_can_write_is_refused(short: Path) -> None:
    (short / "anpd").mkdir()
    (short / "anpd").chmod(0o777)
    with pytest.raises(CallError) as caught:
        Home(short / ("x" * 100)).socket_path({"XDG_RUNTIME_DIR": str(short)})
    assert caught.value.kind is ErrorKind.LOCAL_RESOURCE


def test_a_link_in_place_of_the_runtime_folder_is_refused(short: Path) -> None:
    (short / "elsewhere").mkdir(mode=0o700)
    (short / "anpd").symlink_to(short / "elsewhere")
    with pytest.raises(CallError):
        Home(short / ("x" * 100)).socket_path({"XDG_RUNTIME_DIR": str(short)})


def test_the_flag_is_stronger_than_the_environment(tmp_path: Path) -> None:
    environ = {"ANPD_HOME": str(tmp_path / "env")}
    assert find_home(tmp_path / "flag", environ) == (Home(tmp_path / "flag"), True)
    assert find_home(None, environ) == (Home(tmp_path / "env"), True)
    home, given = find_home(None, {})
    assert home.path.name == "anpd"
    assert not given


def test_the_ready_file_holds_url_and_did(tmp_path: Path) -> None:
    write_ready_file(tmp_path / "ready", url=ADDRESS.url, did=ADDRESS.did)
    found = json.loads((tmp_path / "ready").read_text())
    assert found["url"] == ADDRESS.url
    assert found["did"] == ADDRESS.did


def test_a_file_that_cannot_be_written_is_a_local_resource(tmp_path: Path) -> None:
    with pytest.raises(CallError) as caught:
        write_atomic(tmp_path / "missing" / "file", b"x")
    assert caught.value.kind is ErrorKind.LOCAL_RESOURCE


def _write_often(path: Path) -> None:
    for number in range(60):
        write_atomic(path, bytes([number % 10 + 48]) * 50_000)


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomic(path, b"0" * 50_000)
    writer = multiprocessing.get_context("spawn").Process(
        target=_write_often, args=(path,)
    )
    writer.start()
    while writer.is_alive():
        data = path.read_bytes()
        assert len(data) == 50_000
        assert len(set(data)) == 1
    writer.join()
    assert writer.exitcode == 0
    assert list(tmp_path.iterdir()) == [path]
