# effect: network
import asyncio


def attempt(probe):
    asyncio.run(asyncio.open_connection(probe["host"], probe["tcp_port"]))
