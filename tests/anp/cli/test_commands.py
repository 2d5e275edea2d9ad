"""Commands that need no peer: parsing, asking the local API, printing."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from anp.cli.app import run
from anp.cli.client import LocalHttp
from anp.cli.commands.attachments.attach import _program_name
from anp.errors import EXIT_CODES, ErrorKind
from anp.sidecar.api.answers import fields_of
from anp.sidecar.api.problems import Problem
from anp.sidecar.attachments.listing import is_tool_name
from anp.sidecar.home.home import ApiAddress, Home, OwnerAddress

Output = pytest.CaptureFixture[str]
HASH = "ab" * 32


class _Answer(io.BytesIO):
    """An answer as the commands read it."""

    status = 0


class FakeApi:
    """Answers in the place of a daemon, and remembers what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, httpx.Response] = {}
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        return self.answers[request.url.raw_path.decode()]

    def stand_in(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Get the requests that the commands would send to a daemon."""

        @contextmanager
        def ask(
            sender: LocalHttp, method: str, path: str, **request: Any
        ) -> Iterator[Any]:
            headers = {**sender.headers, **(request["headers"] or {})}
            answer = self(
                httpx.Request(
                    method,
                    f"http://anpd{path}",
                    params=request.get("params"),
                    content=request["body"],
                    headers=headers,
                )
            )
            body = _Answer(answer.content)
            body.status = answer.status_code
            yield body

        monkeypatch.setattr(LocalHttp, "ask", ask)

    def body(self) -> Any:
        """Return the body of the last request."""
        return json.loads(self.asked[-1].content)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """Give a home that looks as if a daemon ran in it."""
    home = Home(tmp_path / "home")
    home.create()
    with home.lock():
        home.write_api(ApiAddress("unused", 1, "ws://127.0.0.1:1/", "did:key:z"))
        yield home


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> FakeApi:
    fake = FakeApi()
    fake.stand_in(monkeypatch)
    return fake


def anpd(home: Home, *words: str) -> int:
    return run(["--home", str(home.path), *words])


def test_help_loads_no_heavy_module() -> None:
    code = (
        "import sys; from anp.cli.app import run; run(['--help']); "
        "heavy = {'httpx2', 'mcp', 'openai', 'starlette', 'uvicorn', 'websockets',"
        " 'cryptography', 'pydantic', 'diskcache', 'RestrictedPython', 'pint'}; "
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stderr == "[]\n"


def test_a_call_sends_what_was_typed_and_prints_the_whole_answer(
    home: Home, api: FakeApi, tmp_path: Path, capsys: Output
) -> None:
    schema = tmp_path / "in.json"
    schema.write_text('{"type": "object"}')
    answer = {"output": {"a": 1}, "source": "agreement", "protocol": HASH}
    api.answers["/v1/calls"] = httpx.Response(200, json=answer)
    words = ["call", "ws://x/", "add", "-d", '{"n": 2}', "--timeout", "5", "--json"]
    options = ["--trust-first-use", "--input-schema", str(schema)]
    assert anpd(home, *words, *options) == 0
    assert json.loads(capsys.readouterr().out) == answer
    assert api.body() == {
        "peer": "ws://x/",
        "need": {
            "requirement": "add",
            "input_schema": {"type": "object"},
            "output_schema": None,
        },
        "input": {"n": 2},
        "mode": "auto",
        "trust_first_use": True,
        "timeout": 5.0,
    }


PENDING = {"kind": "approval_pending", "detail": "wait for bob"}
INTERRUPTED = {"kind": "interrupted", "detail": "the call was cancelled"}


@pytest.mark.parametrize(
    ("ended", "code", "said"),
    [
        ({"result": None, "problem": INTERRUPTED}, 7, PENDING),
        # The owner's word came between the answer and the cancellation.
        ({"result": {"output": {"a": 1}}, "problem": None}, 0, {"output": {"a": 1}}),
        (
            {"result": None, "problem": {**INTERRUPTED, "may_have_run": True}},
            130,
            {**INTERRUPTED, "may_have_run": True},
        ),
    ],
)
def test_a_call_that_waits_for_an_owner_is_taken_back_and_told_truthfully(
    home: Home,
    api: FakeApi,
    capsys: Output,
    ended: dict[str, Any],
    code: int,
    said: dict[str, Any],
) -> None:
    waits = {"id": "c1", "problem": PENDING}
    api.answers["/v1/calls"] = httpx.Response(202, json=waits)
    api.answers["/v1/calls/c1/cancel"] = httpx.Response(200, json=ended)
    assert anpd(home, "call", "x", "y", "--json") == code
    shown = json.loads(capsys.readouterr().out)
    assert {name: shown.get(name) for name in said} == said
    assert ("may_have_run" in shown) is ("may_have_run" in said)


def test_a_problem_of_the_daemon_is_ours_with_its_exit_code(
    home: Home, api: FakeApi, capsys: Output
) -> None:
    problem = {"kind": "application_error", "detail": "no", "may_have_run": True}
    api.answers["/v1/calls"] = httpx.Response(502, json=problem)
    assert anpd(home, "call", "x", "y", "--json") == 10
    out, err = capsys.readouterr()
    assert err == "anpd: no (it may have run)\n"
    assert json.loads(out)["may_have_run"] is True


@pytest.mark.parametrize("content", [b"", b"[]", b'{"kind": "new"}', b"\xff"])
def test_an_answer_that_is_no_problem_document_is_unexpected(
    content: bytes, home: Home, api: FakeApi
) -> None:
    api.answers["/v1/peers"] = httpx.Response(500, content=content)
    assert anpd(home, "peers", "list") == 1


def test_a_text_goes_to_stdout_byte_for_byte(
    home: Home, api: FakeApi, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    text = "# 协议\r\n\x1b no newline".encode()
    api.answers["/v1/protocols/abab/text"] = httpx.Response(200, content=text)
    assert anpd(home, "protocols", "show", "abab", "--text") == 0
    assert capfdbinary.readouterr().out == text


def test_a_hash_cannot_lead_to_another_route(home: Home, api: FakeApi) -> None:
    answer = httpx.Response(400, json={"kind": "usage", "detail": "no such hash"})
    api.answers["/v1/protocols/..%2Fpeers%3Fa"] = answer
    assert anpd(home, "protocols", "show", "../peers?a") == 2


@pytest.mark.parametrize("what", ["allow", "block", "forget"])
def test_peers_are_told_apart_by_the_daemon(
    what: str, home: Home, api: FakeApi, capsys: Output
) -> None:
    api.answers[f"/v1/peers/{what}"] = httpx.Response(200, json={"did": "did:key:z"})
    assert anpd(home, "peers", what, "shop", "--json") == 0
    assert api.body() == {"peer": "shop"}
    assert json.loads(capsys.readouterr().out) == {"did": "did:key:z"}


def test_init_makes_an_identity_once(tmp_path: Path, capsys: Output) -> None:
    home = Home(tmp_path / "home")
    assert anpd(home, "init", "--json") == 0
    did = json.loads(capsys.readouterr().out)["did"]
    key = home.key_file.read_bytes()
    assert anpd(home, "init") == 3
    assert home.key_file.read_bytes() == key
    capsys.readouterr()
    assert anpd(home, "identity", "show", "--json") == 0
    assert json.loads(capsys.readouterr().out)["did"] == did


def test_doctor_works_without_a_daemon(tmp_path: Path, capsys: Output) -> None:
    # Somebody's daemon may hold the port of the default configuration.
    settings = tmp_path / "anpd.toml"
    settings.write_text("[listen]\nport = 0\n")
    home = Home(tmp_path / "home")
    assert anpd(home, "--config", str(settings), "doctor", "--json") == 0
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert {"configuration", "identity", "daemon", "isolation"} <= {
        check["check"] for check in checks
    }


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        ("python", ["shop.py:gone"]),
        ("python", ["nowhere:buy"]),
        ("mcp", ["--", "/nonexistent/server"]),
    ],
)
def test_attach_saves_what_does_not_start_only_if_told_to(
    tmp_path: Path,
    capsys: Output,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    target: list[str],
) -> None:
    (tmp_path / "shop.py").write_text("def buy(n: int) -> dict[str, int]: return {}\n")
    monkeypatch.chdir(tmp_path)
    home = Home(tmp_path / "home")
    saved = home.attachments / "shop.json"
    words = ["attach", kind, "--name", "shop"]
    assert anpd(home, *words, *target) == EXIT_CODES[ErrorKind.CONFIGURATION] == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("anpd: shop does not start, so it was not saved: ")
    assert err.count("\n") == 1
    assert not saved.exists()
    assert anpd(home, *words, "--keep", "--json", *target) == 3
    told = json.loads(capsys.readouterr().out)
    assert told["detail"].startswith("shop is saved but does not start, so it offers ")
    assert told["problem"] in told["detail"]
    assert (told["kind"], told["exposed"]) == ("configuration", [])
    assert saved.exists()


def test_a_program_without_a_usable_function_is_not_attached(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "find" * 33
    (tmp_path / "shop.py").write_text(f"def {long}(n: int) -> dict: return {{}}\n")
    monkeypatch.chdir(tmp_path)
    home = Home(tmp_path / "home")
    words = ["attach", "python", "--name", "shop", "--expose", "*", f"shop.py:{long}"]
    assert anpd(home, *words) == EXIT_CODES[ErrorKind.CONFIGURATION]
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(
        f"anpd: 0 of 1 usable, so shop was not saved: '{long[:64]}': its name is not"
    )
    assert f"--rename '{long[:30]}" in err
    assert not (home.attachments / "shop.json").exists()
    assert anpd(home, *words, "--keep") == 0
    assert capsys.readouterr().out == "attached shop, of which 0 of 1 is usable\n"
    assert anpd(home, *words, "--rename", f"{long}=query") == 0
    out = capsys.readouterr().out
    assert "shop.query" in out
    assert "not marked read-only: shop.query" in out
    (again,) = [line for line in out.splitlines() if "if they change nothing" in line]
    more = shlex.split(again.partition(": ")[2])[3:]
    assert anpd(home, *more) == 0
    assert "not marked" not in capsys.readouterr().out


def test_saved_attachments_are_listed_without_a_daemon(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop.py").write_text("def buy(n: int) -> dict[str, int]: return {}\n")
    monkeypatch.chdir(tmp_path)
    home = Home(tmp_path / "home")
    assert anpd(home, "attach", "python", "shop.py:buy", "--expose", "buy") == 0
    capsys.readouterr()
    assert anpd(home, "attachments", "list", "--json") == 0
    (listed,) = json.loads(capsys.readouterr().out)["attachments"]
    assert (listed["name"], listed["healthy"], listed["expose"]) == (
        "buy",
        None,
        ["buy"],
    )
    assert anpd(home, "attachments", "list") == 0
    assert "buy" in capsys.readouterr().out


def test_a_name_that_no_capability_has_is_refused_with_the_nearest(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop.py").write_text("def get_product(sku: str) -> dict: return {}\n")
    monkeypatch.chdir(tmp_path)
    home = Home(tmp_path / "home")
    words = ["attach", "python", "shop.py:get_product", "--name", "shop"]
    assert anpd(home, *words, "--expose", "get_prodct") == 2
    err = capsys.readouterr().err
    assert "expose: there is no capability get_prodct" in err
    assert "did you mean get_product?" in err
    assert not (home.attachments / "shop.json").exists()


def test_a_capability_may_get_another_name(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop.py").write_text("def list_orders_get() -> dict: return {}\n")
    monkeypatch.chdir(tmp_path)
    home = Home(tmp_path / "home")
    words = ["attach", "python", "shop.py:list_orders_get", "--name", "shop"]
    words += ["--rename", "list_orders_get=orders", "--expose", "orders", "--json"]
    assert anpd(home, *words) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["found"] == told["exposed"] == ["shop.orders"]
    assert told["not_read_only"] == ["shop.orders"]


@pytest.mark.parametrize(
    "name", ["获取商品信息", "जानकारी", "Auftrag_löschen", "ürün.al"]
)
def test_a_capability_may_have_a_name_in_any_script(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "shop.py").write_text("def getProductInfo() -> dict: return {}\n")
    monkeypatch.chdir(tmp_path)
    home = Home(tmp_path / "home")
    words = ["attach", "python", "shop.py:getProductInfo", "--name", "shop", "--json"]
    more = ["--rename", f"getProductInfo={name}", "--expose", name]
    assert anpd(home, *words, *more) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["exposed"] == [f"shop.{name}"]


@pytest.mark.parametrize(
    "name", ["获取 信息", "a\u200bb", "-x", "“x”", "lo\u0308schen", ""]
)
def test_a_name_with_signs_that_are_read_otherwise_is_refused(name: str) -> None:
    assert not is_tool_name(name)


def test_a_program_is_kept_by_its_absolute_path(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "helper").write_text("#!/bin/sh\necho I live beside it >&2\n")
    program = folder / "server"
    program.write_text("#!/bin/sh\nexec helper\n")
    for each in folder.iterdir():
        each.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    home = Home(tmp_path / "home")
    words = ["attach", "mcp", "--name", "x", "--keep", "--", "server", "--flag"]
    assert anpd(home, *words) == 3
    kept = json.loads((home.attachments / "x.json").read_text())
    assert kept["command"] == [str(program), "--flag"]
    capsys.readouterr()
    # From a shell that knows neither, the program finds what stands beside it.
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    again = ["attach", "mcp", "--name", "x", "--", *kept["command"]]
    assert anpd(home, *again) == 3
    assert "I live beside it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python rich_server.py", "rich_server"),
        ("/usr/bin/python3.11 -u /srv/rich_server.py --port 1", "rich_server"),
        ("python -m mcp_server_time", "mcp_server_time"),
        ("python -c pass", "python"),
        ("node dist/shop.mjs", "shop"),
        (
            "npx -y @acme/server-everything@2.0 stdio",
            "server-everything",
        ),
        ("uvx --from shop==1.2 shop-server", "shop-server"),
        ("uvx mcp-server-time@latest --local-timezone UTC", "mcp-server-time"),
        ("uv run --with mcp python shop.py", "shop"),
        ("sh start.sh", "start"),
        ("sh", "sh"),
        ("mcp-server-time", "mcp-server-time"),
        ("tools serve shop", "shop"),
    ],
)
def test_what_an_interpreter_runs_gives_the_name(command: str, name: str) -> None:
    assert _program_name(command.split()) == name


def test_attach_prints_the_command_that_exposes_with_all_that_was_given(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop.py").write_text("def buy(n: int) -> dict[str, int]: return {}\n")
    monkeypatch.chdir(tmp_path)
    home = Home(tmp_path / "home")
    options = ["--env", "A=b c", "--python", sys.executable, "--read-only", "buy"]
    assert anpd(home, "attach", "python", "shop.py:buy", *options) == 0
    line = capsys.readouterr().out.strip().splitlines()[-1]
    words = shlex.split(line.partition("expose all: ")[2])
    assert words[0] == "anpd"
    assert run([*words[1:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["exposed"] == ["buy.buy"]
    saved = json.loads((home.attachments / "buy.json").read_text())
    assert saved["env"] == {"A": "b c"}
    assert saved["read_only"] == ["buy"]


def test_commands_show_the_owners_token(home: Home, api: FakeApi) -> None:
    home.write_owner(OwnerAddress("owner.sock", "secret"))
    answer: dict[str, object] = {"peers": [], "next": None, "unmet": []}
    api.answers["/v1/peers"] = httpx.Response(200, json=answer)
    assert anpd(home, "peers", "list") == 0
    assert api.asked[-1].headers["authorization"] == "Bearer secret"


def test_a_refused_scope_says_why_the_token_is_missing(
    home: Home, api: FakeApi, capsys: Output
) -> None:
    refused = Problem.of(
        ErrorKind.POLICY, "it needs the scope owner", needed_scope="owner"
    )
    api.answers["/v1/peers"] = httpx.Response(403, json=fields_of(refused))
    assert anpd(home, "peers", "list") == 8
    assert "authorization" not in api.asked[-1].headers
    said = capsys.readouterr().err
    assert f"it needs the scope owner ({home.owner_file} cannot be read" in said
    # Another refusal has nothing to do with that.
    other = Problem.of(ErrorKind.POLICY, "blocked")
    api.answers["/v1/peers"] = httpx.Response(403, json=fields_of(other))
    assert anpd(home, "peers", "list") == 8
    assert "cannot be read" not in capsys.readouterr().err
