"""The daemon's private key: a P-256 key in a file of its owner alone."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from anp.errors import ConfigError

__all__ = ["MAX_KEY_FILE", "PrivateKey"]

MAX_KEY_FILE = 16 * 1024
"Largest key file that is read, in bytes; a real one has 241."


class PrivateKey:
    """A P-256 signing key; its text forms never show the secret."""

    def __init__(self, key: ec.EllipticCurvePrivateKey) -> None:
        if not isinstance(key.curve, ec.SECP256R1):
            raise ConfigError(f"the identity key must be P-256, got {key.curve.name}")
        self._key = key
        self._public_bytes = key.public_key().public_bytes(
            serialization.Encoding.X962,
            serialization.PublicFormat.UncompressedPoint,
        )

    def __repr__(self) -> str:
        return f"PrivateKey(public={self._public_bytes.hex()[:16]}…)"

    @classmethod
    def generate(cls) -> PrivateKey:
        """Make a new key, kept nowhere."""
        return cls(ec.generate_private_key(ec.SECP256R1()))

    @classmethod
    def load(cls, path: Path) -> PrivateKey:
        """Read the key at `path`.

        Raises:
            ConfigError: missing, readable by others than its owner, or no P-256 key.
        """
        return cls(_parse(_read_private_file(path), path))

    @classmethod
    def create(cls, path: Path) -> PrivateKey:
        """Make a new key and keep it at `path`, mode 0600, durable on return.

        The file appears whole or not at all, and one that is there is left alone.

        Raises:
            ConfigError: something is at `path` already, or it cannot be written.
        """
        key = cls.generate()
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
        """The public key as uncompressed point, 65 bytes beginning with 04."""
        return self._public_bytes

    def sign(self, data: bytes) -> bytes:
        """Return the ECDSA-SHA256 signature of `data`: r and s, 32 bytes each."""
        r, s = decode_dss_signature(self._key.sign(data, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")

    def _pem(self) -> bytes:
        return self._key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


def _parse(pem: bytes, path: Path) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    # The library's text could quote the file, so none of it is passed on.
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigError(
            f"identity: {path} holds no unencrypted PEM private key; restore it from "
            "a backup, or move it away and run `anpd init` for a new identity"
        ) from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(
        key.curve, ec.SECP256R1
    ):
        raise ConfigError(f"identity: {path} holds a key of another kind than P-256")
    return key


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
