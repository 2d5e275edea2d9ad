"""The key file: private, whole, never overwritten."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from anp.errors import ConfigError
from anp.identity.keys import MAX_KEY_FILE, PrivateKey
from tests.clauses import clause


def write_private(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    path.chmod(0o600)
    return path


def test_a_created_key_is_the_owners_alone_and_loads_again(tmp_path: Path) -> None:
    path = tmp_path / "identity.pem"
    old_mask = os.umask(0o077)
    try:
        made = PrivateKey.create(path)
    finally:
        os.umask(old_mask)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----")
    assert PrivateKey.load(path).public_bytes == made.public_bytes
    assert [entry.name for entry in tmp_path.iterdir()] == ["identity.pem"]


@pytest.mark.parametrize("mask", [0o000, 0o777])
def test_the_umask_changes_nothing(tmp_path: Path, mask: int) -> None:
    old_mask = os.umask(mask)
    try:
        PrivateKey.create(tmp_path / "key")
    finally:
        os.umask(old_mask)
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600


def test_a_key_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "key"
    first = PrivateKey.create(path)
    with pytest.raises(ConfigError, match="never overwritten"):
        PrivateKey.create(path)
    assert PrivateKey.load(path).public_bytes == first.public_bytes
    assert [entry.name for entry in tmp_path.iterdir()] == ["key"]


def test_a_dangling_link_is_not_written_through(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="never overwritten"):
        PrivateKey.create(path)
    assert not (tmp_path / "elsewhere").exists()


def test_of_many_who_create_at_once_one_wins(tmp_path: Path) -> None:
    path, results = tmp_path / "key", list[str]()
    start = threading.Barrier(8)

    def create() -> None:
        start.wait()
        try:
            results.append(PrivateKey.create(path).public_bytes.hex())
        except ConfigError:
            results.append("refused")

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results.count("refused") == 7
    assert PrivateKey.load(path).public_bytes.hex() in results


def test_a_folder_that_is_not_there_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot write"):
        PrivateKey.create(tmp_path / "no" / "key")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o601])
def test_a_key_that_others_may_touch_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "key"
    PrivateKey.create(path)
    path.chmod(mode)
    with pytest.raises(ConfigError, match=f"chmod 600 {path}"):
        PrivateKey.load(path)


def test_a_read_only_key_loads(tmp_path: Path) -> None:
    path = tmp_path / "key"
    PrivateKey.create(path)
    path.chmod(0o400)
    assert len(PrivateKey.load(path).public_bytes) == 65


def test_a_missing_key_names_the_command_that_makes_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="anpd init"):
        PrivateKey.load(tmp_path / "key")


def test_what_is_no_regular_file_is_refused_and_nothing_hangs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(ConfigError, match="is not a regular file"):
            PrivateKey.load(path)


OTHER_KEYS: dict[str, PrivateKeyTypes] = {
    "p384": ec.generate_private_key(ec.SECP384R1()),
    "k256": ec.generate_private_key(ec.SECP256K1()),
    "ed25519": ed25519.Ed25519PrivateKey.generate(),
    "rsa": rsa.generate_private_key(65537, 2048),
}


@pytest.mark.parametrize("kind", sorted(OTHER_KEYS))
def test_keys_of_other_kinds_are_refused(tmp_path: Path, kind: str) -> None:
    pem = OTHER_KEYS[kind].private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    with pytest.raises(ConfigError, match="P-256"):
        PrivateKey.load(write_private(tmp_path / "key", pem))


def test_an_encrypted_key_is_refused(tmp_path: Path) -> None:
    pem = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    with pytest.raises(ConfigError, match="unencrypted"):
        PrivateKey.load(write_private(tmp_path / "key", pem))


def test_a_damaged_key_is_refused_without_showing_it(tmp_path: Path) -> None:
    path = tmp_path / "key"
    PrivateKey.create(path)
    secret = path.read_bytes().splitlines()[1]
    write_private(path, path.read_bytes().replace(secret, secret[::-1]))
    with pytest.raises(ConfigError) as caught:
        PrivateKey.load(path)
    assert secret[::-1].decode() not in str(caught.value)
    assert caught.value.__cause__ is None


def test_the_size_of_a_key_file_is_limited(tmp_path: Path) -> None:
    path = tmp_path / "key"
    made = PrivateKey.create(path)
    pem = path.read_bytes()
    write_private(path, pem + b"\n" * (MAX_KEY_FILE - len(pem)))
    assert PrivateKey.load(path).public_bytes == made.public_bytes
    write_private(path, pem + b"\n" * (MAX_KEY_FILE - len(pem) + 1))
    with pytest.raises(ConfigError, match="larger"):
        PrivateKey.load(path)


@clause("WIRE row 10")
def test_a_signature_is_64_bytes_of_r_and_s_that_verify() -> None:
    key = PrivateKey.generate()
    public = ec.EllipticCurvePublicKey.from_encoded_point(
        ec.SECP256R1(), key.public_bytes
    )
    # Often enough that an r or s with a leading zero byte is among them.
    for number in range(300):
        data = number.to_bytes(2, "big")
        signature = key.sign(data)
        assert len(signature) == 64
        r, s = (int.from_bytes(signature[i : i + 32], "big") for i in (0, 32))
        public.verify(encode_dss_signature(r, s), data, ec.ECDSA(hashes.SHA256()))


def test_the_text_form_of_a_key_shows_no_secret(tmp_path: Path) -> None:
    path = tmp_path / "key"
    key = PrivateKey.create(path)
    assert key.public_bytes.hex()[:16] in repr(key)
    assert len(repr(key)) < 60


def test_a_key_of_another_curve_cannot_be_wrapped() -> None:
    with pytest.raises(ConfigError, match="P-256"):
        PrivateKey(ec.generate_private_key(ec.SECP384R1()))
