"""The daemon's private key: a P-256 key in a file of its owner alone."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from functools import cached_property
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from anp.errors import ConfigError
from anp.identity.public_keys import KeyKind, PublicKey, key_of_bytes

MAX_KEY_FILE = 16 * 1024
"Largest key file that is read, in bytes; a real one has 241."

_ECDSA = ec.ECDSA(hashes.SHA256())
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"Number of the points of P-256."

_Key = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


class PrivateKey:
    """A signing key, P-256 or Ed25519; its text forms never show the secret."""

    def __init__(self, key: _Key) -> None:
        if isinstance(key, ed25519.Ed25519PrivateKey):
            self.kind = KeyKind.ED25519
            self._public_bytes = key.public_key().public_bytes_raw()
        elif isinstance(key.curve, ec.SECP256R1):
            self.kind = KeyKind.P256
            self._public_bytes = key.public_key().public_bytes(
                serialization.Encoding.X962,
                serialization.PublicFormat.UncompressedPoint,
            )
        else:
            raise ConfigError(f"the identity key must be P-256, got {key.curve.name}")
        self._key = key

    def __repr__(self) -> str:
        return f"PrivateKey(public={self._public_bytes.hex()[:16]}…)"

    @classmethod
    def generate(cls, kind: KeyKind = KeyKind.P256) -> PrivateKey:
        """Make a new key, kept nowhere."""
        if kind is KeyKind.ED25519:
            return cls(ed25519.Ed25519PrivateKey.generate())
        return cls(ec.generate_private_key(ec.SECP256R1()))

    @classmethod
    def load(cls, path: Path, kind: KeyKind = KeyKind.P256) -> PrivateKey:
        """Read the key at `path`.

        Raises:
            ConfigError: missing, readable by others than its owner, or of another kind.
        """
        return cls(_parse(_read_private_file(path), path, kind))

    @classmethod
    def create(cls, path: Path, kind: KeyKind = KeyKind.P256) -> PrivateKey:
        """Make a new key and keep it at `path`, mode 0600, durable on return.

        The file appears whole or not at all, and one that is there is left alone.

        Raises:
            ConfigError: something is at `path` already, or it cannot be written.
        """
        key = cls.generate(kind)
        try:
            _write_private_file(path, key._pem())
        except FileExistsError:
            raise ConfigError(
                f"identity: {path} is there already and is never overwritten; "
                "move it away first to get a new identity"
            ) from None
        except OSError as exc:
            raise ConfigError(
                f"identity: cannot write {path}: {exc.strerror or exc}"
            ) from exc
        return key

    @property
    def public_bytes(self) -> bytes:
        """The public key: Ed25519 32 bytes, P-256 as uncompressed point 65 bytes."""
        return self._public_bytes

    @cached_property
    def public_key(self) -> PublicKey:
        """The public key as documents have it."""
        return key_of_bytes(self.kind, self._public_bytes)

    def sign(self, data: bytes) -> bytes:
        """Return the signature of `data`, 64 bytes.

        Ed25519 as it is; P-256 ECDSA with SHA-256: r and s, 32 bytes each.
        """
        if isinstance(self._key, ed25519.Ed25519PrivateKey):
            return self._key.sign(data)
        r, s = decode_dss_signature(self._key.sign(data, _ECDSA))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")

    def derive(self, purpose: bytes, size: int = 32) -> bytes:
        """Return a secret for one purpose; nobody without this key can know it.

        Args:
            purpose: Names what it is for; another purpose gives another secret.
            size: Its length in bytes.
        """
        value = self._key.private_bytes(
            serialization.Encoding.DER,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return HKDF(hashes.SHA256(), size, salt=None, info=purpose).derive(value)

    def for_purpose(self, purpose: bytes) -> PrivateKey:
        """Return a P-256 key for one purpose, so that no signature counts for two."""
        # 128 bits more than the order has make every key as likely (FIPS 186-5, A.2.1).
        number = int.from_bytes(self.derive(purpose, 48), "big") % (_ORDER - 1) + 1
        return PrivateKey(ec.derive_private_key(number, ec.SECP256R1()))

    def _pem(self) -> bytes:
        return self._key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


def _parse(pem: bytes, path: Path, kind: KeyKind) -> _Key:
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    # The library's text could quote the file, so none of it is passed on.
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigError(
            f"identity: {path} holds no unencrypted PEM private key; restore it from "
            "a backup, or move it away and run `anpd init` for a new identity"
        ) from None
    if kind is KeyKind.ED25519 and isinstance(key, ed25519.Ed25519PrivateKey):
        return key
    if (
        kind is KeyKind.P256
        and isinstance(key, ec.EllipticCurvePrivateKey)
        and isinstance(key.curve, ec.SECP256R1)
    ):
        return key
    raise ConfigError(f"identity: {path} holds a key of another kind than {kind.value}")


def _read_private_file(path: Path) -> bytes:
    try:
        # Without O_NONBLOCK a named pipe in this place would hang the daemon.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise ConfigError(
            f"identity: no key at {path}; `anpd init` makes one"
        ) from None
    except OSError as exc:
        raise ConfigError(
            f"identity: cannot read {path}: {exc.strerror or exc}"
        ) from exc
    try:
        # Asked of the open file, so that nothing can be swapped in between.
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise ConfigError(f"identity: {path} is not a regular file")
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise ConfigError(
                f"identity: {path} has mode {stat.S_IMODE(mode):04o}, so others than "
                f"you may use the key; chmod 600 {path}"
            )
        data = os.read(descriptor, MAX_KEY_FILE + 1)
    finally:
        os.close(descriptor)
    if len(data) > MAX_KEY_FILE:
        raise ConfigError(f"identity: {path} is larger than {MAX_KEY_FILE} bytes")
    return data


def _write_private_file(path: Path, data: bytes) -> None:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb") as file:
            # The umask can only take bits away; it must not take our own.
            os.fchmod(file.fileno(), 0o600)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        # A link, unlike a rename, fails when the name is taken.
        os.link(draft, path)
    finally:
        os.unlink(draft)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as exc:
        # Some network file systems cannot; the file itself is synced already.
        if exc.errno not in {errno.EINVAL, errno.ENOTSUP}:
            raise
    finally:
        os.close(descriptor)
