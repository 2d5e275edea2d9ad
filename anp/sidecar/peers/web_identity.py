"""Our `did:wba`, the resolver of peers' DIDs, and TLS of the port for peers."""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from anp.channel.listener import Page
from anp.errors import ConfigError
from anp.identity.dids import WEB_METHODS, Identities, LocalIdentity
from anp.identity.keys import PrivateKey
from anp.identity.public_keys import KeyKind
from anp.identity.resolver import ChainResolver, KeyResolver
from anp.identity.web.documents import MAX_DOCUMENT
from anp.identity.web.fetcher import Fetcher
from anp.identity.web.guard import FetchPolicy
from anp.identity.web.own_document import identity_of_document
from anp.identity.web.resolver import WebResolver
from anp.identity.web_dids import WebDid
from anp.sidecar.config.settings import Config, FetchConfig
from anp.sidecar.home.home import Home

SOON = 14.0
"Days before the end of a certificate from which on the owner is warned."

DAY = 86_400.0
"Seconds of a day."


@dataclass(frozen=True, slots=True)
class CertificateState:
    """The end of the certificate of the port."""

    text: str
    "In words, for the owner."

    expired: bool | None = None
    "True after its end, False shortly before, None when it lasts or there is none."


MEDIA_TYPE = "application/json"
"Media type our document is served with; ANP's SDK takes no other."


@dataclass(frozen=True, slots=True)
class OwnWeb:
    """Our own `did:wba`, as its document has it."""

    did: WebDid

    identity: LocalIdentity
    "The DID with the key that signs our hellos."

    url: str | None
    "Our WebSocket URL by the document."

    document: bytes
    "The document, as it is published."

    def pages(self) -> dict[str, Page]:
        """Return the pages that the port for peers serves for it, by path."""
        return {self.did.document_path: (MEDIA_TYPE, self.document)}


def load_own_web(home: Home, config: Config, key: PrivateKey) -> OwnWeb | None:
    """Return our `did:wba`, or None when the owner did not choose it.

    Raises:
        ConfigError: There is no document, others would refuse it, or a key is missing.
    """
    if config.identity.method != "did:wba":
        return None
    data = _read(home.did_document)
    if config.identity.sign_with == "ed25519":
        key = PrivateKey.load(home.binding_key, KeyKind.ED25519)
    did, identity, urls = identity_of_document(data, (key,))
    return OwnWeb(did, identity, urls[0] if urls else None, data)


def make_identities(key: PrivateKey, config: Config, own: OwnWeb | None) -> Identities:
    """Return all DIDs of ours."""
    if own is not None:
        return Identities(key, own.identity)
    return Identities.of_method(key, config.identity.method)


def make_fetcher(config: FetchConfig) -> Fetcher:
    """Return the fetcher for URLs that peers name.

    Raises:
        ConfigError: `fetch.ca_file` cannot be read.
    """
    return Fetcher(
        FetchPolicy(
            allow=tuple(ipaddress.ip_network(text) for text in config.allow),
            allow_http_loopback=config.allow_http_loopback,
            ca_file=None if config.ca_file is None else str(config.ca_file),
        )
    )


def make_resolver(web: WebResolver) -> ChainResolver:
    """Return the resolver for every method we know."""
    return ChainResolver(
        {
            **dict.fromkeys(KeyResolver.methods, KeyResolver()),
            **dict.fromkeys(WEB_METHODS, web),
        }
    )


def server_tls(config: Config) -> ssl.SSLContext | None:
    """Return the TLS settings of the port for peers, or None if it speaks plain.

    Raises:
        ConfigError: The certificate or its key cannot be used.
    """
    listen = config.listen
    if listen.tls_cert is None or listen.tls_key is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # A key with a password would make the library ask on the terminal.
        context.load_cert_chain(listen.tls_cert, listen.tls_key, password="")
    except (OSError, ssl.SSLError) as exc:
        raise ConfigError(
            f"listen.tls_cert {listen.tls_cert} with tls_key {listen.tls_key} cannot "
            f"be used: {exc.strerror or exc}"
        ) from exc
    return context


def renew_tls(config: Config, context: ssl.SSLContext | None) -> None:
    """Read the certificate and its key again, for the connections that come.

    Args:
        context: The settings that the port listens with; None when it speaks plain.

    Raises:
        ConfigError: They cannot be used; the old ones stay.
    """
    listen = config.listen
    # A pair that does not fit would be loaded by halves.
    if context is None or server_tls(config) is None:
        return
    assert listen.tls_cert is not None, "server_tls found it"
    context.load_cert_chain(listen.tls_cert, listen.tls_key, password="")


def certificate_state(config: Config, now: float) -> CertificateState:
    """Return when the certificate of the port ends.

    Args:
        now: Seconds since 1970.

    Raises:
        ConfigError: It cannot be read.
    """
    path = config.listen.tls_cert
    if path is None:
        return CertificateState("there is none")
    # It takes a while to load, and most daemons have no certificate.
    from cryptography import x509

    try:
        ends = x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc
    except (OSError, ValueError) as exc:
        raise ConfigError(f"listen.tls_cert {path} cannot be read: {exc}") from exc
    text, days = (
        f"valid until {ends:%Y-%m-%d %H:%M} UTC",
        (ends.timestamp() - now) / DAY,
    )
    if days > SOON:
        return CertificateState(text)
    if days <= 0:
        return CertificateState(f"{text}: it has expired", expired=True)
    return CertificateState(f"{text}: it ends in {days:.0f} days", expired=False)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_DOCUMENT + 1)
    except FileNotFoundError:
        raise ConfigError(
            f"identity: no document at {path}; `anpd identity create DOMAIN` makes one"
        ) from None
    except OSError as exc:
        raise ConfigError(f"identity: cannot read {path}: {exc.strerror}") from exc
    if len(data) > MAX_DOCUMENT:
        raise ConfigError(f"identity: {path} is larger than {MAX_DOCUMENT} bytes")
    return data
