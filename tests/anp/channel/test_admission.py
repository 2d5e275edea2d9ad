"""Every accepted connection has a place, whatever state it is in, or is refused."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import pytest

from anp.channel.admission import (
    CONNECTIONS,
    DOOR_PATIENCE,
    LINK_PATIENCE,
    Admission,
    DoorSocket,
    Guest,
)
from anp.channel.core.shares import NoPlace
from tests.waiting import until


class FakeLink:
    """A link that is silent for as long as a test says."""

    def __init__(self) -> None:
        self.silent = 0.0
        self.gave_way = False

    def silence(self) -> float:
        return self.silent

    def give_way(self) -> None:
        self.gave_way = True


class Door:
    """An admission with 16 places: 4 at the door, 12 for links, 8 of them common."""

    def __init__(self) -> None:
        self.now = 0.0
        self.admission = Admission(16, clock=lambda: self.now)
        self.hung_up: list[int] = []
        self._port = 0

    def enter(self, address: str) -> Guest | None:
        self._port += 1
        port, name = self._port, (address, self._port)
        if not self.admission.enter(name, lambda: self.hung_up.append(port)):
            return None
        return self.admission.find(name)

    def leave_last(self, address: str) -> None:
        """End the connection that was opened last."""
        self.admission.left((address, self._port))

    def linked(self, address: str, did: str, *, listed: bool = False) -> FakeLink:
        guest = self.enter(address)
        assert guest is not None
        link = FakeLink()
        guest.silence, guest.give_way = link.silence, link.give_way
        self.admission.prove(guest, did, listed=listed)
        # So that the pace is never in the way.
        self.now += 1.0
        return link


def test_an_address_has_half_of_the_door_and_its_oldest_gives_way_after_a_while() -> (
    None
):
    door = Door()
    assert door.enter("192.0.2.1")
    assert door.enter("192.0.2.1")
    assert door.enter("192.0.2.1") is None
    door.now = DOOR_PATIENCE
    assert door.enter("192.0.2.1")
    assert door.hung_up == [1]
    assert door.admission.occupancy.at_door == 2


def test_a_new_address_gets_in_at_once_when_the_door_is_full() -> None:
    door = Door()
    for address in ("192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.2"):
        assert door.enter(address)
    assert door.enter("192.0.2.3")
    assert len(door.hung_up) == 1


def test_strangers_share_a_part_and_listed_peers_find_a_place_all_the_same() -> None:
    door = Door()
    for number in range(8):
        door.linked(f"192.0.2.{number}", "stranger")
    with pytest.raises(NoPlace, match="8 of unlisted peers"):
        door.linked("192.0.2.99", "stranger")
    occupancy = door.admission.occupancy
    assert (occupancy.unlisted, occupancy.unlisted_can_connect) == (8, False)
    assert occupancy.listed_can_connect
    # At the same address as the stranger that was refused.
    friends = [
        door.linked("192.0.2.99", f"friend{number}", listed=True) for number in range(6)
    ]
    assert not any(friend.gave_way for friend in friends)
    assert door.admission.occupancy.links == 12


def test_an_idle_link_of_a_stranger_gives_way_to_another_stranger() -> None:
    door = Door()
    links = [door.linked(f"192.0.2.{number}", "stranger") for number in range(8)]
    links[3].silent = LINK_PATIENCE
    assert door.admission.occupancy.unlisted_can_connect
    door.linked("192.0.2.99", "stranger")
    assert [link.gave_way for link in links] == [n == 3 for n in range(8)]


def test_a_connection_that_ends_gives_its_place_back_once() -> None:
    door = Door()
    guest = door.enter("192.0.2.1")
    assert guest is not None
    door.admission.prove(guest, "stranger", listed=False)
    for _ in range(2):
        door.admission.left(("192.0.2.1", 1))
    # Whoever left before its peer was looked up gets no place any more.
    door.admission.prove(guest, "stranger", listed=False)
    assert door.admission.occupancy.links == 0
    assert door.admission.occupancy.at_door == 0


def test_a_lower_limit_gives_the_next_place_of_whoever_is_idle() -> None:
    door = Door()
    links = [door.linked(f"192.0.2.{number}", "stranger") for number in range(8)]
    door.admission.limit(8)
    assert not door.admission.occupancy.unlisted_can_connect
    links[0].silent = LINK_PATIENCE
    door.linked("192.0.2.99", "stranger")
    assert door.admission.occupancy.unlisted == 8


def test_an_address_opens_connections_at_a_pace() -> None:
    door = Door()
    _, burst = CONNECTIONS
    for number in range(burst):
        door.enter("192.0.2.1")
        door.admission.left(("192.0.2.1", number + 1))
    assert door.enter("192.0.2.1") is None
    assert door.enter("192.0.2.2")
    door.now += 1.0
    assert door.enter("192.0.2.1")


async def test_what_a_stranger_sent_delays_its_next_turn_beside_others() -> None:
    door = Door()
    stranger, friend = door.enter("192.0.2.1"), door.enter("192.0.2.1")
    assert stranger is not None
    assert friend is not None
    door.admission.prove(stranger, "stranger", listed=False)
    door.admission.prove(friend, "friend", listed=True)
    mib = 1024 * 1024
    # Nobody else is there yet.
    stranger.read(64 * mib)
    done: list[str] = []
    stranger.do(lambda: done.append("alone"))
    assert done == ["alone"]
    await friend.done(lambda: done.append("listed"))
    friend.read(64 * mib)
    stranger.read(64 * mib)
    stranger.do(lambda: done.append("its turn"))
    await friend.done(lambda: done.append("listed again"))
    assert done == ["alone", "listed", "listed again"]
    await until(lambda: done[-1] == "its turn")


@pytest.fixture
def listener() -> Iterator[DoorSocket]:
    door = DoorSocket(Admission(16), socket.AF_INET, socket.SOCK_STREAM)
    with contextlib.closing(door):
        door.bind(("127.0.0.1", 0))
        door.listen()
        yield door


async def test_a_place_is_held_until_the_descriptor_is_closed(
    listener: DoorSocket,
) -> None:
    """Also before TLS and HTTP have seen a byte, which a protocol would not notice."""
    admission = listener._admission
    server = await asyncio.get_running_loop().create_server(
        asyncio.Protocol, sock=listener
    )
    clients = []
    for _ in range(4):
        clients.append(socket.create_connection(listener.getsockname()))
        await asyncio.sleep(0)
    await until(lambda: admission.occupancy.at_door == 2)
    # The other two were reset.
    await until(lambda: admission.occupancy.refused == 2)
    for client in clients:
        client.close()
    await until(lambda: admission.occupancy.at_door == 0)
    server.close()


def test_an_address_that_never_shook_hands_gives_way_to_a_new_one_at_once() -> None:
    door = Door()
    silent = [f"192.0.2.{number}" for number in range(20)]
    # Twenty addresses hold the four places in turn, and come back at once each time.
    for _ in range(200):
        door.now += 0.1
        for address in silent:
            door.enter(address)
    newcomer = door.enter("198.51.100.1")
    assert newcomer is not None
    for _ in range(4):
        door.now += 0.1
        for address in silent:
            door.enter(address)
    assert newcomer.place is not None
    door.admission.prove(newcomer, "new", listed=False)
    assert newcomer.proved


async def test_the_wait_for_its_turn_is_not_a_guests_own() -> None:
    door = Door()
    guest = door.enter("192.0.2.1")
    assert guest is not None
    door.now = 0.2
    # Others had all the time of strangers, so that a turn has to wait.
    door.admission.work.charge("192.0.2.9", 10.0)
    guest.do(lambda: None)
    door.now = 5.0
    assert guest.waited(door.now) == pytest.approx(0.2)


def test_time_at_the_door_that_ends_in_a_handshake_is_no_debt() -> None:
    door = Door()
    for _ in range(10):
        door.now += 5.0
        guest = door.enter("192.0.2.1")
        assert guest is not None
        door.now += 0.4
        door.admission.prove(guest, "good", listed=False)
        door.leave_last("192.0.2.1")
    for address in ("192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5"):
        assert door.enter(address)
    door.now += 0.5
    assert door.enter("192.0.2.1")
