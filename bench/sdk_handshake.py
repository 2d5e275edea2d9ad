# mypy: ignore-errors
"""Seconds of CPU of one handshake of the official SDK; see `bench.frames`.

Run with the SDK's own environment, from a folder outside this repository, because both
packages are called `anp`: `python -P sdk_handshake.py ROUNDS HANDSHAKES` prints a line
for each round. Both sides are in this process, and only pass each other their messages.
"""

import asyncio
import json
import sys
import time

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from anp.e2e_encryption.short_term_key_generater import ShortTermKeyGenerater
from anp.utils.crypto_tool import generate_bitcoin_address


def party():
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return f"did:all:{generate_bitcoin_address(key.public_key())}", pem.decode()


async def shake_hands(one, two):
    sides = {}
    waiting = []

    def sender(name):
        async def send(message):
            waiting.append((name, json.dumps(message)))

        return send

    sides["one"] = ShortTermKeyGenerater(*one, two[0], sender("one"), True)
    active = asyncio.create_task(sides["one"].generate_short_term_key_active())
    passive = None
    while not (active.done() and passive is not None and passive.done()):
        await asyncio.sleep(0)
        if not waiting:
            continue
        name, text = waiting.pop(0)
        message = json.loads(text)
        if passive is None:
            sides["two"] = ShortTermKeyGenerater(
                *two, one[0], sender("two"), False, message["sessionId"]
            )
            sides["two"].receive_json_message(message)
            passive = asyncio.create_task(
                sides["two"].generate_short_term_key_passive()
            )
            continue
        sides["two" if name == "one" else "one"].receive_json_message(message)
        # Its event is set and cleared at once; let it be noticed.
        for _ in range(4):
            await asyncio.sleep(0)
    assert (active.result(), passive.result()) == (True, True)


async def main():
    one, two = party(), party()
    rounds, handshakes = int(sys.argv[1]), int(sys.argv[2])
    for number in range(rounds + 1):
        started = time.process_time()
        for _ in range(handshakes):
            await shake_hands(one, two)
        if number:
            print((time.process_time() - started) / handshakes)


asyncio.run(main())
