"""identity: our DIDs, their documents and keys."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from click import Context

from anp.cli.client import home_of, load_settings
from anp.cli.grammar import Argument, Commands, Option
from anp.cli.options import Json
from anp.cli.output import Line, Settings, print_bytes, print_one
from anp.errors import CallError, ConfigError, ErrorKind, PeerError

if TYPE_CHECKING:
    from anp.identity.dids import Identities
    from anp.identity.keys import PrivateKey
    from anp.identity.public_keys import KeyKind
    from anp.sidecar.peers.web_identity import OwnWeb

identity_app = Commands(help="The DIDs and keys of this daemon.")

METHOD_LINE = re.compile(r'(?m)^method = "did:[a-z]+"')


def register(app: Commands) -> None:
    """Add the commands of this file."""
    app.add(identity_app, "identity")


@identity_app.command("create")
def create(
    context: Context,
    domain: Annotated[str, Argument(help="Host name of the web server.")],
    port: Annotated[
        int | None, Option(help="Port of the web server, if not 443.")
    ] = None,
    path: Annotated[str, Option(help="Path on that host, such as user:alice.")] = "",
    url: Annotated[
        str | None, Option(help="Our WebSocket URL; default wss://DOMAIN:PORT/.")
    ] = None,
    key: Annotated[
        str,
        Option(help="Key of the DID: ed25519 puts it into the path, p256 does not."),
    ] = "ed25519",
    replace: Annotated[
        bool, Option("--replace", help="Write a new document over the old one.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Make a did:wba and its DID document, and print where to publish it."""
    from anp.identity.address import normalise_url
    from anp.identity.public_keys import KeyKind
    from anp.identity.web.own_document import (
        document_bytes,
        make_document,
        make_web_did,
    )
    from anp.sidecar.home.home import write_atomic

    if key not in {"ed25519", "p256"}:
        raise CallError(ErrorKind.USAGE, f"--key {key}: use ed25519 or p256")
    home, _ = home_of(context.obj)
    if home.did_document.exists() and not replace:
        raise ConfigError(
            f"{home.did_document} is there already; --replace writes a new one"
        )
    config = load_settings(context.obj)
    home.create()
    own = _key(config.identity.key_file or home.key_file, KeyKind.P256)
    binding: PrivateKey | None = None
    # A domain that is no name must not leave a key behind.
    make_web_did(domain, port=port, path=path)
    if key == "ed25519":
        binding = _key(home.binding_key, KeyKind.ED25519)
    did = make_web_did(
        domain,
        port=port,
        path=path,
        binding_key=None if binding is None else binding.public_key,
    )
    dialled = normalise_url(
        url or config.listen.public_url or f"wss://{did.authority}/"
    )
    document = make_document(
        did,
        hello_key=own.public_key,
        binding_key=binding,
        url=dialled,
        created=datetime.now(UTC),
    )
    write_atomic(home.did_document, document_bytes(document), mode=0o644)
    chosen = _choose(home.config_file)
    answer = {
        "did": did.text,
        "document": str(home.did_document),
        "publish_at": did.document_url,
        "url": dialled,
        "configured": chosen,
    }
    told: list[Line] = [
        ("did", did.text),
        ("document", home.did_document),
        ("publish", did.document_url),
        ("address", dialled),
        "",
    ]
    if not chosen:
        told.append(f'write in {home.config_file}:  [identity] method = "did:wba"')
    told += [
        "Copy the document to that place, or let the daemon serve it: listen.tls_cert "
        "and tls_key,",
        f"with the port in the DID. Then `anpd identity verify {did.text}`.",
    ]
    if binding is not None and did.path:
        told += [
            f"Keep {home.binding_key}: without it no new document of this DID can be "
            "signed.",
            "The daemon does not need it, so it may be kept on another machine.",
        ]
    print_one(answer, told, as_json=as_json)


@identity_app.command("show")
def show(context: Context, as_json: Json = False) -> None:
    """Show our DIDs."""
    from anp.identity.dids import did_all

    key, identities, own = _identities(context.obj)
    found: dict[str, Any] = {
        "did": identities.primary.did,
        "did_key": identities.canonical,
        "did_all": did_all(key.public_bytes),
        "public_key": key.public_bytes.hex(),
        "key_file": str(home_of(context.obj)[0].key_file),
    }
    if own is not None:
        found |= {
            "signs_with": identities.primary.key_id,
            "publish_at": own.did.document_url,
            "url": own.url,
        }
    print_one(found, found.items(), as_json=as_json)


@identity_app.command("rotate")
def rotate(context: Context) -> None:
    """Print the steps that change the key of our identity."""
    from anp.identity.dids import is_web_did

    _, identities, own = _identities(context.obj)
    if own is None or not is_web_did(identities.primary.did):
        raise CallError(
            ErrorKind.USAGE,
            f"{identities.primary.did} is made of its key, so another key is another "
            "identity: `anpd identity create DOMAIN` makes a did:wba, whose key can "
            "be changed",
        )
    home, _ = home_of(context.obj)
    config = load_settings(context.obj)
    steps = ["identity create", own.did.host]
    if own.did.port is not None:
        steps.append(f"--port {own.did.port}")
    if own.did.binding is not None:
        steps.append(f"--path {':'.join(own.did.path[:-1])}")
        word = "peers accept the new key, because the key in the path signs for it"
    else:
        if own.did.path:
            steps.append(f"--path {':'.join(own.did.path)}")
        if not home.binding_key.exists():
            steps.append("--key p256")
        word = f"peers that know us refuse it until `anpd peers trust {own.did.text}`"
    raise CallError(
        ErrorKind.USAGE,
        f"this is done by hand: stop the daemon, move "
        f"{config.identity.key_file or home.key_file} away, run `anpd --home "
        f"{home.path} {' '.join(steps)} --replace` and "
        f"publish the document; {word}",
    )


@identity_app.command("export")
def export(context: Context) -> None:
    """Print the DID document for publishing; it holds no secret."""
    _, _, own = _identities(context.obj)
    if own is None:
        raise CallError(
            ErrorKind.USAGE,
            "a did:key or did:all needs no document; `anpd identity create DOMAIN` "
            "makes a did:wba",
        )
    print_bytes(own.document)


@identity_app.command("verify")
def verify(
    context: Context,
    did: Annotated[str, Argument(help="Any did:wba or did:web.")],
    as_json: Json = False,
) -> None:
    """Resolve a DID as a peer would, and print the keys and addresses."""
    from anp.identity.dids import is_web_did
    from anp.identity.web.resolver import WebResolver
    from anp.identity.web_dids import parse_web_did
    from anp.sidecar.peers.web_identity import make_fetcher

    if not is_web_did(did):
        raise CallError(ErrorKind.USAGE, f"{did} is not a did:wba or did:web")
    fetcher = make_fetcher(load_settings(context.obj).fetch)
    try:
        parsed = parse_web_did(did)
        document = asyncio.run(WebResolver(fetcher).resolve(parsed.text))
    except PeerError as exc:
        raise CallError(ErrorKind.IDENTITY_REFUSED, exc.detail) from exc
    found = {
        "did": parsed.text,
        "document": parsed.document_url,
        "bound_to_key": document.bound_key is not None,
        "keys": {
            name: {"kind": key.kind.value, "multibase": key.multibase}
            for name, key in document.keys.items()
        },
        "urls": list(document.urls),
    }
    told: list[Line] = [("did", parsed.text), ("document", parsed.document_url)]
    if document.bound_key is not None:
        told.append(("bound", "its path names the key that signed the document"))
    told += [
        ("key", f"{name} {key.kind.value} {key.multibase}")
        for name, key in document.keys.items()
    ]
    told += [("address", url) for url in document.urls]
    print_one(found, told, as_json=as_json)
    if not document.keys and not as_json:
        raise CallError(
            ErrorKind.IDENTITY_REFUSED, "the document lists no key that can sign hellos"
        )


def _key(path: Path, kind: KeyKind) -> PrivateKey:
    from anp.identity.keys import PrivateKey

    if path.exists():
        return PrivateKey.load(path, kind)
    return PrivateKey.create(path, kind)


def _identities(settings: Settings) -> tuple[PrivateKey, Identities, OwnWeb | None]:
    from anp.identity.keys import PrivateKey
    from anp.sidecar.peers.web_identity import load_own_web, make_identities

    home, _ = home_of(settings)
    config = load_settings(settings)
    path = config.identity.key_file or home.key_file
    if not path.exists():
        raise CallError(
            ErrorKind.CONFIGURATION,
            f"{home.path} has no identity; run: anpd --home {home.path} init",
        )
    key = PrivateKey.load(path)
    own = load_own_web(home, config, key)
    return key, make_identities(key, config, own), own


def _choose(path: Path) -> bool:
    """Choose did:wba in a configuration that `anpd init` wrote; say if it could."""
    from anp.sidecar.config.schema import default_config_text
    from anp.sidecar.home.home import write_atomic

    if not path.exists():
        write_atomic(path, default_config_text("did:wba").encode())
        return True
    text = path.read_text(encoding="utf-8")
    if len(METHOD_LINE.findall(text)) != 1:
        return False
    write_atomic(path, METHOD_LINE.sub('method = "did:wba"', text).encode())
    return True
