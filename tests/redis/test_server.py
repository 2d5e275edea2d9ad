"""A real server: many writers, kills, outages, and what it has to be (`make
test-redis`)."""

from __future__ import annotations

import logging
import random
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from cache.errors import StoreUnavailable
from cache.parts.keys import end_all_keys
from cache.parts.shelf import key_of
from cache.records.records import KINDS, AgreementRole, AgreementState
from cache.redis.database import RedisDatabase
from cache.redis.place import RedisPlace
from cache.redis.server import RedisTimes
from cache.store import Store, open_store
from tests.cache.samples import DOCUMENT, KEY, PIN, PROVIDER_HALF, RECORDS, trio
from tests.cache.servers import FAST, Server, find_server, is_wanted, running
from tests.cache.states import set_state
from tests.cache.test_bytes import put

pytestmark = pytest.mark.skipif(
    not is_wanted() or find_server() is None,
    reason="needs a Redis server (run by `make test-redis`)",
)

ROOT = Path(__file__).parents[2]
NAME = (KEY.role, KEY.peer_did, KEY.id)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with running(tmp_path / "server") as started:
        yield started


def test_every_kind_is_kept_and_damage_is_its_own_only(server: Server) -> None:
    with Store(server.backend()) as store:
        for record in RECORDS:
            put(store, record)
        assert store.check() == ([], ())
        for record in RECORDS:
            name = f"anpd:row:{key_of(record)}"
            good = server.ask("GET", name)
            for number in random.Random(7).sample(range(len(good)), 12):
                bad = bytearray(good)
                bad[number] ^= 0x20
                server.ask("SET", name, bytes(bad))
                with Store(server.backend()) as other:
                    _, damaged = other.check()
                assert [each.key for each in damaged] == [key_of(record)]
            server.ask("SET", name, good)
        assert {record.kind for record in RECORDS} == set(KINDS)


def test_many_daemons_lose_no_use_and_no_counter(server: Server) -> None:
    stores = [Store(server.backend()) for _ in range(4)]
    saved = stores[0].save_agreement(*trio(1))
    stores[0].save_key(KEY, now=KEY.created)
    reserved: list[int] = []
    claimed: list[int] = []
    errors: list[BaseException] = []

    def work(store: Store) -> None:
        try:
            for number in range(25):
                store.add_usage([], [(saved, 1, float(number))])
                first = store.reserve_key(*NAME, size=1024, now=KEY.created)
                assert first is not None
                reserved.append(first)
                block = 1024 * (number + 1)
                if store.claim_key(
                    *NAME, first=block, last=block + 1023, now=KEY.created
                ):
                    claimed.append(block)
        except BaseException as exc:  # noqa: BLE001 - told to the main thread
            errors.append(exc)

    threads = [threading.Thread(target=work, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert [found.uses for found in stores[0].all_agreements()] == [100]
    assert len(set(reserved)) == len(reserved) == 100
    assert len(set(claimed)) == len(claimed) >= 1
    for store in stores:
        store.close()


def test_what_one_daemon_revokes_the_other_serves_no_more(server: Server) -> None:
    _, _, agreement = trio(1)
    ours = replace(
        agreement, role=AgreementRole.PROVIDER, need_key=None, hash=DOCUMENT.hash
    )
    with Store(server.backend()) as one, Store(server.backend()) as other:
        one.save_agreement(DOCUMENT, PROVIDER_HALF, ours)
        assert other.provider_half(DOCUMENT.hash, "did:key:zAnybody") is not None
        before = other.changes("half")
        set_state(one, DOCUMENT.hash, AgreementState.REVOKED)
        assert other.provider_half(DOCUMENT.hash, "did:key:zAnybody") is None
        assert other.is_revoked(DOCUMENT.hash)
        assert other.changes("half") > before


WRITER = """
import sys
from cache.store import Store
from cache.redis.database import RedisDatabase
from cache.redis.place import RedisPlace
from tests.cache.samples import trio
store = Store(RedisDatabase(RedisPlace.parse(sys.argv[1])))
for number in range(int(sys.argv[2]), 100000):
    store.save_agreement(*trio(number))
    print(number, flush=True)
"""


def test_after_a_kill_every_agreement_is_whole_and_none_is_lost(
    server: Server,
) -> None:
    dice = random.Random()
    reported = 0
    for round_ in range(8):
        command = [sys.executable, "-c", WRITER, server.url, str(reported)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as child:
            assert child.stdout is not None
            wanted = dice.randint(1, 15)
            for line in child.stdout:
                reported = int(line) + 1
                wanted -= 1
                if not wanted:
                    break
            if round_ % 2:
                # The server as well: with `appendfsync always` it keeps all it said.
                server.kill()
            child.send_signal(signal.SIGKILL)
            rest = child.stdout.read().splitlines()
        reported = int(rest[-1]) + 1 if rest else reported
        if round_ % 2:
            server.start()
        with Store(server.backend()) as store:
            assert store.check() == ([], ())
            agreements = store.all_agreements()
            hashes = {agreement.hash for agreement in agreements}
            for agreement in agreements:
                assert store.document(agreement.hash) is not None
                assert store.half(agreement.hash, agreement.role, agreement.revision)
            documents = store._database.read(lambda rows: rows.keys("document/"))
        assert {key.removeprefix("document/") for key in documents} == hashes
        assert reported <= len(hashes) <= reported + 1
        reported = len(hashes)


def test_in_an_outage_reads_go_on_writes_fail_at_once_and_all_comes_back(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    place = RedisPlace.parse(server.url)
    with Store(RedisDatabase(place, times=replace(FAST, away=3600.0))) as store:
        saved = store.save_agreement(*trio(1))
        assert store.agreements_of(saved.hash) == [saved]
        server.kill()
        for _ in range(3):
            with pytest.raises(StoreUnavailable, match="cache: redis://"):
                store.save_pin(PIN)
            assert store.agreements_of(saved.hash) == [saved]
            with pytest.raises(StoreUnavailable):
                store.first_time(["n"], keep=60.0)
        with pytest.raises(StoreUnavailable):
            store.add_usage([], [(saved, 1, 5000.0)])
        server.start()
        while True:
            try:
                store.save_pin(PIN)
            except StoreUnavailable:
                continue
            break
        store.add_usage([], [(saved, 1, 5000.0)])
        assert [found.uses for found in store.agreements_of(saved.hash)] == [1]
    said = [r.getMessage() for r in caplog.records if r.name == "cache.redis.database"]
    assert [line.split()[:2] for line in said if "away" in line.split()] == [
        ["store", "away"]
    ]
    assert len([line for line in said if line.startswith("store back")]) == 1


def test_what_was_read_counts_only_for_a_while(server: Server) -> None:
    times = replace(FAST, away=0.0)
    with Store(RedisDatabase(RedisPlace.parse(server.url), times=times)) as store:
        saved = store.save_agreement(*trio(1))
        assert store.agreements_of(saved.hash)
        server.kill()
        with pytest.raises(StoreUnavailable):
            store.agreements_of(saved.hash)
        with pytest.raises(StoreUnavailable):
            store.agreements_of(saved.hash)


def test_after_a_restart_of_the_server_kept_keys_end_and_nothing_is_promised(
    server: Server,
) -> None:
    with Store(server.backend()) as store, Store(server.backend()) as other:
        store.save_key(KEY, now=KEY.created)
        server.kill()
        server.start()
        for each in (store, other):
            while True:
                try:
                    found = each.reserve_key(*NAME, size=1024, now=KEY.created)
                except StoreUnavailable:
                    continue
                break
            assert found is None
            assert not each.end_key(*NAME, unless_claimed=10**9)


def test_a_key_goes_by_itself_and_makes_room(server: Server) -> None:
    with Store(server.backend()) as store:
        store.save_key(replace(KEY, expires=KEY.created + 10), now=KEY.created)
        left = server.ask("PTTL", f"anpd:row:{key_of(KEY)}")
        assert 3_500_000 < left <= 3_610_000
        store.claim_key(*NAME, first=4096, last=5119, now=KEY.created)
        assert 0 < server.ask("PTTL", f"anpd:row:{key_of(KEY)}") <= left
        server.ask("DEL", f"anpd:row:{key_of(KEY)}")
        assert store.keys_with(KEY.role, KEY.peer_did, KEY.binding) == []
        store._database.write(lambda rows: store._prune(rows, "key/", KEY.created))
        assert server.ask("ZCARD", "anpd:keys") == 0
        assert store.first_time(["n"], keep=100.0)
        assert 0 < server.ask("PTTL", "anpd:seen:n") <= 100_000


def test_a_full_server_is_said_and_nothing_is_half_written(server: Server) -> None:
    with Store(server.backend()) as store:
        store.save_agreement(*trio(0))
        server.ask("CONFIG", "SET", "maxmemory", "1")
        with pytest.raises(StoreUnavailable, match="no space left"):
            store.save_agreement(*trio(1))
        assert len(store.all_agreements()) == 1
        server.ask("CONFIG", "SET", "maxmemory", "0")
        store.save_agreement(*trio(1))
        assert store.check() == ([], ())


def test_a_server_that_may_lose_agreements_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = ("--maxmemory-policy", "allkeys-lru", "--appendonly", "no")
    with running(tmp_path / "s", *options) as server:
        with open_store(tmp_path, url=server.url) as store:
            said = store.check_file()
        assert [bool(re.search("noeviction|appendonly", line)) for line in said] == [
            True,
            True,
        ]
        open_store(tmp_path, url=server.url).close()
    assert "maxmemory-policy" in caplog.text


def test_a_prefix_belongs_to_one_identity(server: Server, tmp_path: Path) -> None:
    open_store(tmp_path, url=server.url, owner="did:key:zA").close()
    with pytest.raises(StoreUnavailable, match=r"another identity; set another cache"):
        open_store(tmp_path, url=server.url, owner="did:key:zB")
    open_store(tmp_path, url=server.url, owner="did:key:zB", prefix="b").close()
    open_store(tmp_path, url=server.url, owner="did:key:zA").close()


def test_a_password_is_needed_used_and_never_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running(tmp_path / "s", "--requirepass", "s3cret") as server:
        host = f"127.0.0.1:{server.port}"
        for wrong in (f"redis://{host}", f"redis://:s3cretX@{host}"):
            with pytest.raises(StoreUnavailable) as caught:
                open_store(tmp_path, url=wrong)
            assert "password" in str(caught.value) or "NOAUTH" in str(caught.value)
            assert "s3cret" not in str(caught.value)
        with open_store(tmp_path, url=f"redis://:s3cret@{host}") as store:
            store.save_pin(PIN)
            server.kill()
            with pytest.raises(StoreUnavailable) as caught:
                store.save_pin(PIN)
    assert "s3cret" not in caplog.text + str(caught.value)


def test_a_server_that_is_not_there_is_said_in_one_line(tmp_path: Path) -> None:
    times = RedisTimes(connect=0.5)
    for url in ("redis://127.0.0.1:1", f"unix://{tmp_path}/none"):
        with pytest.raises(StoreUnavailable, match="cannot be reached") as caught:
            open_store(tmp_path, url=url, times=times)
        assert "\n" not in str(caught.value)


def test_a_socket_on_this_machine_will_do(tmp_path: Path) -> None:
    path = tmp_path / "r.sock"
    with (
        running(tmp_path / "s", "--unixsocket", str(path)),
        open_store(tmp_path, url=f"unix://{path}?db=3") as store,
    ):
        store.save_pin(PIN)
        assert store.pins() == [PIN]


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Return files with a certificate of 127.0.0.1 and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a store")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "cert.pem", folder / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    return paths


def test_with_tls_only_the_trusted_certificate_will_do(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    options = (
        *("--tls-port", str(port), "--tls-cert-file", str(certificate)),
        *("--tls-key-file", str(key), "--tls-auth-clients", "no"),
        *("--tls-ca-cert-file", str(certificate)),
    )
    url = f"rediss://127.0.0.1:{port}"
    with running(tmp_path / "s", *options) as server:
        with open_store(tmp_path, url=url, ca_file=certificate) as store:
            store.save_pin(PIN)
            assert store.pins() == [PIN]
        with pytest.raises(StoreUnavailable, match=r"not trusted .* cache\.ca_file"):
            open_store(tmp_path, url=url)
        with pytest.raises(StoreUnavailable, match="not trusted"):
            open_store(tmp_path, url=f"rediss://localhost:{port}", ca_file=certificate)
        with pytest.raises(StoreUnavailable, match=f":{server.port}/0"):
            open_store(tmp_path, url=f"rediss://127.0.0.1:{server.port}")


def test_ending_all_keys_leaves_other_records_alone(server: Server) -> None:
    with Store(server.backend()) as store:
        store.save_key(KEY, now=KEY.created)
        store.save_pin(PIN)
        store._database.write(end_all_keys)
        found = store.key(*NAME)
        assert found is not None
        assert found.ended
        assert store.pins() == [PIN]
