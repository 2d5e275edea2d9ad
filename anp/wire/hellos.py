"""The messages of a handshake in their usual spelling, by one form for each kind.

A form says how a message is written, and what of it is signed, with places for its
values. Ours are written by filling in the places. Nearly every message that comes is
written the same way: it is read by matching its form, without a parser, and what is the
same in all hellos of a peer is read once. Anything else goes to the parser
(`parse_message`), which decides what is accepted and says what is wrong.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, Final

from anp.errors import PeerError
from anp.wire.encrypted import EncryptedData
from anp.wire.messages import (
    DestinationHello,
    Finished,
    HelloProof,
    KeyShare,
    SourceHello,
    VerificationMethod,
    canonical_bytes,
    canonical_text,
    render,
)
from anp.wire.meta_protocol import MetaProtocol
from anp.wire.proof import Identity, proof_value
from negotiation.errors import JsonError
from negotiation.strict_json import MAX_DEPTH, parse_json

_LONGEST: Final = 8192
"Characters of a message that is read by its form; a usual one has 1,400."

# Printable ASCII without quotation mark and backslash: the text stands for itself, in
# the message and in what is signed.
_PLAIN: Final = r"[ !#-\[\]-~]"
_LIST: Final = rf'\[(?:"{_PLAIN}*+"(?:,"{_PLAIN}*+")*+)?\]'

_JSON: Final = {
    "supported_versions": _LIST,
    "cipher_suites": _LIST,
    "supported_groups": _LIST,
    "expires": "[1-9][0-9]{0,14}",
    # One object without others in it.
    "meta": r"\{[ -\[\]-z|~]*+\}",
    "signed_meta": "",
}
"Places that hold other JSON than a text, each with its pattern."

_PATTERNS: Final = {
    **dict.fromkeys(("source_did", "destination_did"), f"did:{_PLAIN}*+"),
    # They may be empty.
    **dict.fromkeys(("version", "timestamp", "message_id"), f"{_PLAIN}*+"),
    "selected_version": f"{_PLAIN}*+",
    **_JSON,
}
_PLACE: Final = re.compile(r"%\((\w+)\)s")


def _parts(text: str) -> list[str]:
    """Return the text before the first place, its name, the text behind it, and on."""
    for name in _JSON:
        text = text.replace(f'"%({name})s"', f"%({name})s")
    return _PLACE.split(text)


def _filled(parts: list[str], places: dict[str, str]) -> str:
    # It takes a quarter of the time that `%` does.
    filled = parts.copy()
    filled[1::2] = map(places.__getitem__, parts[1::2])
    return "".join(filled)


class MessageForm:
    """The way in which messages of one kind are written.

    Args:
        message: Its members in their order; the values are places, as `%(name)s`.
    """

    def __init__(self, message: dict[str, Any]) -> None:
        self._sent = parts = _parts(render(message))
        self._signed: list[str] = []
        if "proof" in message:
            # The members of the object may be in another order there.
            signed = canonical_bytes({**message, "metaProtocol": "%(signed_meta)s"})
            self._signed = _parts(signed.decode())
        patterns = [re.escape(part) for part in parts]
        for at in range(1, len(parts), 2):
            patterns[at] = f"({_PATTERNS.get(parts[at], f'{_PLAIN}++')})"
        self._match = re.compile("".join(patterns)).fullmatch

    def sent(self, places: dict[str, str]) -> str:
        """Return the message."""
        return _filled(self._sent, places)

    def signed(self, places: dict[str, str]) -> bytes:
        """Return what the signature of a hello covers (WIRE row 9)."""
        return _filled(self._signed, places).encode("ascii")

    def read(self, text: str) -> dict[str, str] | None:
        """Return what stands in the places of a message, or None: it is no such one."""
        found = self._match(text)
        return (
            dict(zip(self._sent[1::2], found.groups(), strict=True)) if found else None
        )


def _head(kind: str) -> dict[str, str]:
    return {
        "version": "%(version)s",
        "type": kind,
        "timestamp": "%(timestamp)s",
        "messageId": "%(message_id)s",
        "sessionId": "%(session_id)s",
        "sourceDid": "%(source_did)s",
        "destinationDid": "%(destination_did)s",
    }


_METHOD: Final = {
    "id": "%(key_id)s",
    "type": "%(key_type)s",
    "publicKeyHex": "%(public_key_hex)s",
}
_SHARE: Final = {
    "group": "%(group)s",
    "expires": "%(expires)s",
    "keyExchange": "%(key_exchange)s",
}
_PROOF: Final = {
    "type": "%(proof_type)s",
    "verificationMethod": "%(proof_key_id)s",
    "created": "%(created)s",
    "proofValue": "%(proof_value)s",
}

SOURCE_HELLO: Final = MessageForm(
    {
        **_head("sourceHello"),
        "verificationMethod": _METHOD,
        "random": "%(random)s",
        "supportedVersions": "%(supported_versions)s",
        "cipherSuites": "%(cipher_suites)s",
        "supportedGroups": "%(supported_groups)s",
        "keyShares": [_SHARE],
        "metaProtocol": "%(meta)s",
        "proof": _PROOF,
    }
)
DESTINATION_HELLO: Final = MessageForm(
    {
        **_head("destinationHello"),
        "verificationMethod": _METHOD,
        "random": "%(random)s",
        "selectedVersion": "%(selected_version)s",
        "cipherSuite": "%(cipher_suite)s",
        "keyShare": _SHARE,
        "metaProtocol": "%(meta)s",
        "proof": _PROOF,
    }
)
FINISHED: Final = MessageForm(
    {
        **_head("finished"),
        "verifyData": {
            "iv": "%(iv)s",
            "tag": "%(tag)s",
            "ciphertext": "%(ciphertext)s",
        },
    }
)


def escaped(text: str) -> str:
    """Return a text as it stands between quotation marks in JSON."""
    return json.encoder.encode_basestring_ascii(text)[1:-1]


# Most channels between two daemons offer and answer the same.
@lru_cache(maxsize=256)
def meta_places(meta: MetaProtocol) -> dict[str, str]:
    """Return the places that a `metaProtocol` fills; they are not to be changed."""
    value = meta.to_json()
    return {"meta": render(value), "signed_meta": canonical_text(value)}


def write_hello(form: MessageForm, places: dict[str, str], signer: Identity) -> str:
    """Return a hello with its signature; send it at once (WIRE row 12).

    Args:
        places: All but `proof_value`. Texts are `escaped`.

    Raises:
        LocalError: The signer gave no 64 bytes.
    """
    value = proof_value(signer, form.signed(places))
    return form.sent({**places, "proof_value": value})


def read_handshake(
    message: str | bytes,
) -> SourceHello | DestinationHello | Finished | None:
    """Read a message of a handshake in its usual spelling.

    Returns:
        None: it is something else; ask `parse_message`.
    """
    if len(message) > _LONGEST:
        return None
    try:
        text = message if isinstance(message, str) else message.decode("ascii")
    except UnicodeDecodeError:
        return None
    if (places := FINISHED.read(text)) is not None:
        return Finished(
            **_common(places),
            verify_data=EncryptedData(
                places["iv"], places["tag"], places["ciphertext"]
            ),
        )
    for form in SOURCE_HELLO, DESTINATION_HELLO:
        if (places := form.read(text)) is not None:
            return _hello(form, places)
    return None


def _common(places: dict[str, str]) -> dict[str, Any]:
    return {
        "message_id": places["message_id"],
        "session_id": places["session_id"],
        "source_did": places["source_did"],
        "destination_did": places["destination_did"],
    }


def _hello(
    form: MessageForm, places: dict[str, str]
) -> SourceHello | DestinationHello | None:
    meta = _read_meta(places["meta"])
    if meta is None:
        return None
    places["signed_meta"] = meta[1]
    share = KeyShare(places["group"], int(places["expires"]), places["key_exchange"])
    fields = {
        **_common(places),
        "version": places["version"],
        "verification_method": VerificationMethod(
            places["key_id"], places["key_type"], places["public_key_hex"]
        ),
        "random": places["random"],
        "proof": HelloProof(
            places["proof_type"],
            places["proof_key_id"],
            places["created"],
            places["proof_value"],
        ),
        "meta": meta[0],
        "signed": form.signed(places),
    }
    if form is DESTINATION_HELLO:
        return DestinationHello(
            **fields,
            cipher_suite=places["cipher_suite"],
            key_share=share,
            selected_version=places["selected_version"],
        )
    return SourceHello(
        **fields,
        cipher_suites=_texts(places["cipher_suites"]),
        key_shares=(share,),
        supported_versions=_texts(places["supported_versions"]),
    )


@lru_cache(maxsize=256)
def _texts(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


# A peer mostly says the same in all its hellos.
@lru_cache(maxsize=256)
def _read_meta(text: str) -> tuple[MetaProtocol, str] | None:
    """Return a `metaProtocol`, and its text as it is signed; None if it is none."""
    try:
        # It stands within a message.
        value = parse_json(text, max_size=_LONGEST, max_depth=MAX_DEPTH - 1)
        return MetaProtocol.from_json(value), canonical_text(value)
    except (JsonError, PeerError):
        return None
