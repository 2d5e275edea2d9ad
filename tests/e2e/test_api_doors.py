"""Access to the local API, tried from outside."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from anp.sidecar.home.home import Home
from tests.e2e.daemons import Anpd
from tests.e2e.owner import owner_client, owner_headers

CONNECT = """
import os, socket, sys
os.setgid(65534)
os.setuid(65534)
try:
    socket.socket(socket.AF_UNIX).connect(sys.argv[1])
except PermissionError:
    sys.exit(7)
"""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Anpd]:
    """One daemon for all: what a door refuses leaves nothing behind."""
    home = tmp_path_factory.mktemp("doors") / "home"
    with Anpd(home, listen__api_port="0").up() as running:
        yield running


@pytest.fixture
def tcp(daemon: Anpd) -> Iterator[httpx.Client]:
    """A client on loopback that shows the owner's token."""
    url = Home(daemon.home).read_api().api_url
    with httpx.Client(base_url=url, headers=owner_headers(daemon.home)) as client:
        yield client


@pytest.fixture
def unix(daemon: Anpd) -> Iterator[httpx.Client]:
    with owner_client(daemon.home) as client:
        yield client


def refused(answer: httpx.Response, status: int, kind: str) -> dict[str, Any]:
    """Check that an answer is a problem document of this kind."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert (body["status"], body["kind"]) == (status, kind)
    assert body["type"] == f"urn:anpd:error:{kind}"
    return body


def test_a_token_opens_the_door_on_loopback(tcp: httpx.Client) -> None:
    assert tcp.get("/v1/info").status_code == 200


@pytest.mark.parametrize("sent", ["", "Bearer", "Bearer wrong", "Basic eA==", "x" * 90])
def test_a_missing_or_wrong_token_is_refused(tcp: httpx.Client, sent: str) -> None:
    tcp.headers.pop("authorization")
    headers = {"authorization": sent} if sent else {}
    answer = tcp.get("/v1/info", headers=headers)
    refused(answer, 401, "policy")
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_probes_need_no_token_and_tell_nothing(tcp: httpx.Client) -> None:
    tcp.headers.pop("authorization")
    assert tcp.get("/livez").json() == {"status": "ok"}
    assert tcp.get("/readyz").status_code == 200
    refused(tcp.get("/mcp"), 401, "policy")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1:1", ""])
def test_a_foreign_host_is_refused_whatever_it_resolves_to(
    tcp: httpx.Client, host: str
) -> None:
    refused(tcp.get("/v1/info", headers={"host": host}), 421, "usage")
    refused(tcp.get("/livez", headers={"host": host}), 421, "usage")


def test_localhost_is_ours(tcp: httpx.Client) -> None:
    host = f"localhost:{tcp.base_url.port}"
    assert tcp.get("/v1/info", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost"])
def test_a_foreign_origin_is_refused_even_with_the_token(
    tcp: httpx.Client, unix: httpx.Client, origin: str
) -> None:
    for client in (tcp, unix):
        answer = client.get("/v1/info", headers={"origin": origin})
        refused(answer, 403, "policy")
        assert "access-control-allow-origin" not in answer.headers


def test_a_preflight_request_gets_no_permission(tcp: httpx.Client) -> None:
    headers = {
        "origin": "https://evil.example",
        "access-control-request-method": "POST",
    }
    answer = tcp.options("/v1/calls", headers=headers)
    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", ""]
)
def test_a_post_that_is_no_json_is_refused(
    tcp: httpx.Client, unix: httpx.Client, kind: str
) -> None:
    paths = ("/v1/reload", "/v1/calls", "/v1/peers/allow", "/v1/protocols/import")
    for client in (tcp, unix):
        for path in paths:
            headers = {"content-type": kind} if kind else {}
            answer = client.post(path, content=b"{}", headers=headers)
            refused(answer, 415, "usage")


def test_no_path_of_the_api_takes_a_command(unix: httpx.Client) -> None:
    document = unix.get("/v1/openapi.json").json()
    assert not [path for path in document["paths"] if "attach" in path]
    body = {"attachments": [{"name": "x", "command": ["touch", "y"]}]}
    refused(unix.post("/v1/reload", json=body), 400, "usage")


def test_the_socket_and_its_folder_are_the_owners_alone(daemon: Anpd) -> None:
    path = Path(Home(daemon.home).read_api().socket)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    token = daemon.home / "api.token"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become a second user")
def test_a_second_user_cannot_connect_even_where_the_folders_are_open(
    daemon: Anpd,
) -> None:
    path = Path(Home(daemon.home).read_api().socket)
    opened: list[tuple[Path, int]] = []
    try:
        # Every folder above is opened, so that the socket's own mode is what refuses.
        for folder in path.parents:
            mode = stat.S_IMODE(folder.stat().st_mode)
            if not mode & 0o001:
                opened.append((folder, mode))
                folder.chmod(mode | 0o011)
        ended = subprocess.run([sys.executable, "-c", CONNECT, path], check=False)
    finally:
        for folder, mode in opened:
            folder.chmod(mode)
    assert ended.returncode == 7


def test_a_token_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    daemon = Anpd(tmp_path / "home", listen__api_port="0")
    daemon.ok("init")
    token = daemon.home / "api.token"
    token.write_text("t" * 40)
    token.chmod(0o644)
    ended = daemon.run("up", "--port", "0")
    assert ended.code == 13
    assert "chmod 600" in ended.stderr


def test_what_is_not_there_is_a_problem_document(unix: httpx.Client) -> None:
    refused(unix.get("/v1/nothing"), 404, "usage")
    refused(unix.delete("/v1/info"), 405, "usage")
    refused(unix.get("/v1/calls/abc"), 404, "usage")
    refused(unix.get("/v1/negotiations/abc"), 404, "usage")
    refused(unix.get("/v1/protocols/abcd"), 404, "usage")
    refused(unix.get("/v1/info?more=1"), 400, "usage")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"[]", "JSON object"),
        (b"{", "no JSON"),
        (b"{}", "give peer and need"),
        (b'{"peer": "a", "peer": "b", "need": "t"}', "no JSON"),
        (b'{"peer": "a", "need": "t", "inputs": {}}', "inputs"),
        (b'{"peer": "a", "need": "t", "input": []}', "input"),
        (b'{"peer": "a", "need": "t", "timeout": 0}', "timeout"),
        (b'{"peer": "a", "need": "t", "timeout": "5"}', "timeout"),
        (b'{"peer": "a", "need": "t", "mode": "magic"}', "mode"),
        (b'{"peer": 1, "need": "t"}', "peer"),
        (b"[" * 2000, "no JSON"),
    ],
)
def test_a_body_that_does_not_fit_says_what_is_wrong(
    unix: httpx.Client, body: bytes, words: str
) -> None:
    headers = {"content-type": "application/json"}
    answer = unix.post("/v1/calls", content=body, headers=headers)
    assert words in refused(answer, 400, "usage")["detail"]


def test_a_body_over_the_limit_is_refused(unix: httpx.Client) -> None:
    body = b'{"peer": "' + b"x" * (2 * 1024 * 1024) + b'"}'
    headers = {"content-type": "application/json"}
    refused(unix.post("/v1/calls", content=body, headers=headers), 413, "usage")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/protocols/0/code?revision=-1", 400),
        (f"/v1/protocols?after={'0' * 5_000}", 400),
        ("/v1/protocols?peer=nobody-knows-this", 404),
    ],
)
def test_a_query_outside_its_schema_is_the_callers_fault(
    unix: httpx.Client, path: str, status: int
) -> None:
    refused(unix.get(path), status, "usage")


def test_a_refused_method_hears_which_ones_there_are(unix: httpx.Client) -> None:
    answer = unix.request("OPTIONS", "/v1/calls")
    assert answer.status_code == 405
    assert sorted(answer.headers["allow"].split(", ")) == ["GET", "HEAD", "POST"]
