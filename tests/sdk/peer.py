# mypy: ignore-errors
"""A live peer made of the official SDK: its handshake, cipher and negotiation.

Run with the SDK's own environment, from a folder outside this repository, because both
packages are called `anp`. Standard input gives one JSON object with the role, the
addresses and what the application over the SDK says; each line of standard output is
one event as JSON. The SDK has no session code (WIRE row 51), so sockets and application
frames are ours; everything that is signed, encrypted or negotiated is the SDK's.
"""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime

import websockets
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from openai import AsyncOpenAI

from anp.e2e_encryption.message_generation import generate_encrypted_message
from anp.e2e_encryption.short_term_key_generater import ShortTermKeyGenerater
from anp.meta_protocol.meta_protocol import MetaProtocol
from anp.utils.crypto_tool import (
    decrypt_aes_gcm_sha256,
    generate_bitcoin_address,
    generate_random_hex,
)
from anp.utils.llm.base_llm import AzureLLM

META, APPLICATION = 0x00, 0x40


def tell(event: str, **facts) -> None:
    """Write one event."""
    print(json.dumps({"event": event, **facts}), flush=True)


class Party:
    """A key with its did:all, as an application over the SDK makes one."""

    def __init__(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        self.did = f"did:all:{generate_bitcoin_address(key.public_key())}"
        self.pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode()


class Session:
    """One channel with a peer: handshake, then frames sorted by their first byte."""

    def __init__(self, party: Party, connection) -> None:
        self.party = party
        self.connection = connection
        self.generater = None
        self.application: asyncio.Queue[bytes] = asyncio.Queue()
        self.meta: MetaProtocol | None = None

    async def send_json(self, message) -> None:
        await self.connection.send(json.dumps(message))

    async def handshake(self, remote_did: str, hello=None) -> None:
        """Let the SDK make the keys; `hello` is the peer's, if it began."""
        session_id = hello["sessionId"] if hello else None
        self.generater = ShortTermKeyGenerater(
            self.party.did,
            self.party.pem,
            remote_did,
            self.send_json,
            hello is None,
            session_id,
        )
        if hello is not None:
            self.generater.receive_json_message(hello)
            done = asyncio.create_task(self.generater.generate_short_term_key_passive())
        else:
            done = asyncio.create_task(self.generater.generate_short_term_key_active())
        while not done.done():
            hearing = asyncio.create_task(self.connection.recv())
            await asyncio.wait({done, hearing}, return_when=asyncio.FIRST_COMPLETED)
            if not hearing.done():
                hearing.cancel()
                break
            self.generater.receive_json_message(json.loads(hearing.result()))
            # Its event is set and cleared at once; let it be noticed.
            await asyncio.sleep(0.01)
        assert done.result(), "the SDK refused the handshake"
        tell("open", remote_did=remote_did, key_expires=self.keys[4])

    @property
    def keys(self):
        return self.generater.get_final_short_term_key()

    async def send(self, plaintext: bytes) -> None:
        """Encrypt one frame, header byte included."""
        remote_did, send_key, _, key_id, _, _ = self.keys
        message = generate_encrypted_message(
            "1.0",
            generate_random_hex(16),
            self.party.did,
            remote_did,
            key_id,
            plaintext,
            send_key,
        )
        await self.send_json(message)

    async def read(self) -> None:
        """Decrypt what comes and hand it to whom it concerns."""
        async for text in self.connection:
            message = json.loads(text)
            if message["type"] != "message":
                tell("heard", message=message)
                continue
            # The SDK decodes what it decrypts (all of ours is UTF-8).
            text = decrypt_aes_gcm_sha256(message["encryptedData"], self.keys[2])
            plaintext = text.encode()
            if plaintext[0] >> 6 == META:
                self.meta.handle_meta_data(plaintext)
            else:
                self.application.put_nowait(plaintext[1:])


def meta_protocol(session: Session, order) -> MetaProtocol:
    """Return the SDK's negotiator with the test's model."""

    async def capability(requirement: str, given: str, wanted: str) -> str:
        tell("capability asked", requirement=requirement)
        return order["capability"]

    client = AsyncOpenAI(base_url=order["model"], api_key="none", max_retries=0)
    meta = MetaProtocol(
        send_callback=session.send,
        get_capability_info_callback=capability,
        llm=AzureLLM(client, "scripted"),
    )
    process = meta._process_negotiation_messages

    async def process_and_tell():
        # Without a folder for code both entry points say False, whatever happened.
        success, protocol = await process()
        tell("negotiated", accepted=success, protocol=protocol)
        return success, protocol

    meta._process_negotiation_messages = process_and_tell
    return meta


async def settle_code(meta: MetaProtocol) -> None:
    await meta.notify_code_generation()
    tell("code", generated=await meta.wait_for_code_generation())


async def initiate(order) -> None:
    """Call a daemon: handshake, negotiation, then each request of the order."""
    party = Party()
    async with websockets.connect(order["url"], proxy=None) as connection:
        session = Session(party, connection)
        await session.handshake(order["remote_did"])
        session.meta = meta_protocol(session, order)
        reading = asyncio.create_task(session.read())
        await session.meta.negotiate_protocol(
            order["requirement"], order["input"], order["output"]
        )
        await settle_code(session.meta)
        for request in order["requests"]:
            await session.send(bytes([APPLICATION]) + json.dumps(request).encode())
            tell("answer", message=json.loads(await session.application.get()))
        reading.cancel()


def reply_to(request, order):
    """Return the order's answer with the id of the request, where the order says."""
    reply = json.loads(json.dumps(order["reply"]))
    reply[order["id_name"]] = request[order["id_name"]]
    return reply


async def respond(order) -> None:
    """Be called by a daemon, once; answer its requests until it hangs up."""
    party = Party()
    ended = asyncio.Event()

    async def serve(connection) -> None:
        hello = json.loads(await connection.recv())
        session = Session(party, connection)
        await session.handshake(hello["sourceDid"], hello)
        session.meta = meta_protocol(session, order)
        # It empties its queue when called, so it comes first (WIRE row 47).
        waiting = asyncio.create_task(session.meta.wait_remote_negotiation())
        await asyncio.sleep(0)
        reading = asyncio.create_task(session.read())
        await waiting
        await settle_code(session.meta)
        while True:
            arriving = asyncio.create_task(session.application.get())
            await asyncio.wait({arriving, reading}, return_when="FIRST_COMPLETED")
            if not arriving.done():
                arriving.cancel()
                break
            request = json.loads(arriving.result())
            tell("request", message=request)
            answer = json.dumps(reply_to(request, order)).encode()
            await session.send(bytes([APPLICATION]) + answer)
        ended.set()

    async with websockets.serve(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        tell("listening", url=f"ws://127.0.0.1:{port}/", did=party.did)
        await ended.wait()


async def main() -> None:
    order = json.loads(sys.stdin.readline())
    tell("started", at=datetime.now(UTC).isoformat())
    async with asyncio.timeout(100):
        await (initiate(order) if order["role"] == "initiator" else respond(order))


if __name__ == "__main__":
    asyncio.run(main())
