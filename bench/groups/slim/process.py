"""Broker, members or sender of a SLIM group, as a process of its own.

It runs in SLIM's environment: `python process.py broker|members|sender PORT …`. Each
prints one line of JSON when it is ready; the sender prints the figures.
"""

import asyncio
import json
import statistics
import sys
import time
from datetime import timedelta
from typing import Any

import slim_bindings as slim

SECRET = "a secret that all of them share, for the test"
ANSWER, ANSWER_ALL, COUNT, REPORT = b"?", b"&", b".", b"!"
"""First byte of a post: answer its sender, answer the whole group, count it, or answer
with the number counted."""

PATIENCE = timedelta(seconds=60)


def name_of(who: str) -> Any:
    return slim.Name("anpd", "bench", who)


def say(**figures: Any) -> None:
    print(json.dumps(figures), flush=True)


async def connected(port: int, who: str) -> tuple[Any, int]:
    """Return an app with a connection of its own to the broker."""
    service = slim.create_service(who)
    config = slim.new_insecure_client_config(f"http://127.0.0.1:{port}")
    connection = await service.connect_async(config)
    app = service.create_app_with_secret(name_of(who), SECRET)
    await app.subscribe_async(app.name(), connection)
    return app, connection


async def broker(port: int) -> None:
    service = slim.create_service("broker")
    config = slim.new_insecure_server_config(f"127.0.0.1:{port}")
    await service.run_server_async(config)
    say(ready=True)
    await asyncio.Event().wait()


async def member(app: Any) -> None:
    session = await app.listen_for_session_async(PATIENCE)
    counted = 0
    while True:
        message = await session.get_message_async(PATIENCE)
        match message.payload[:1]:
            case b"?":
                await session.publish_to_async(
                    message.context, message.payload, None, None
                )
            case b"&":
                # Its answer goes to the whole group, as this post did.
                await session.publish_async(b"=" + message.payload[1:], None, None)
            case b".":
                counted += 1
            case b"!":
                count = str(counted).encode()
                await session.publish_to_async(message.context, count, None, None)
                counted = 0


async def members(port: int, count: int) -> None:
    apps = [await connected(port, f"member-{number}") for number in range(count)]
    say(ready=True)
    await asyncio.gather(*(member(app) for app, _ in apps))


async def sender(
    port: int, count: int, rounds: int, posts: int, size: int, to_all: int
) -> None:
    app, connection = await connected(port, "sender")
    config = slim.SessionConfig(
        session_type=slim.SessionType.GROUP,
        max_retries=10,
        interval=timedelta(seconds=5),
        metadata={},
        mls_settings=slim.MlsSettings(
            header_integrity_validation_percent=100,
            max_seen_control_message_ids_size=None,
        ),
    )
    session = await app.create_session_and_wait_async(config, name_of("group"))
    began = time.perf_counter()
    for number in range(count):
        who = name_of(f"member-{number}")
        await app.set_route_async(who, connection)
        await session.invite_and_wait_async(who)
    joined = time.perf_counter() - began
    filler = b"x" * (size - 1)
    times, asked = [], ANSWER_ALL if to_all else ANSWER
    for _ in range(rounds):
        began = time.perf_counter()
        await session.publish_async(asked + filler, None, None)
        for _ in range(count):
            await session.get_message_async(PATIENCE)
        times.append((time.perf_counter() - began) * 1000)
    # Nobody waits for the confirmation of a post, as in a program with much to say.
    began = time.perf_counter()
    for _ in range(posts):
        await session.publish_async(COUNT + filler, None, None)
    await session.publish_async(REPORT, None, None)
    counted = 0
    for _ in range(count):
        counted += int((await session.get_message_async(PATIENCE)).payload)
    seconds = time.perf_counter() - began
    warm = sorted(times[len(times) // 10 :])
    say(
        members=count,
        mls=True,
        join_s=round(joined, 3),
        rounds=len(warm),
        p50_ms=round(statistics.median(warm), 2),
        p99_ms=round(warm[min(len(warm) - 1, int(len(warm) * 0.99))], 2),
        posts=posts,
        delivered=counted,
        lost=posts * count - counted,
        deliveries_per_s=round(counted / seconds),
    )


async def main() -> None:
    slim.uniffi_set_event_loop(asyncio.get_running_loop())
    slim.initialize_with_defaults()
    role, *numbers = sys.argv[1:]
    roles = {"broker": broker, "members": members, "sender": sender}
    await roles[role](*map(int, numbers))


asyncio.run(main())
