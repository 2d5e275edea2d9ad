"""The WebSocket of one link: messages that arrive, those that leave, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from functools import partial
from struct import Struct
from typing import Any, Final

from websockets import frames as websocket_frames
from websockets.asyncio.connection import Connection
from websockets.exceptions import ConnectionClosed, ConnectionClosedOK
from websockets.frames import Frame, Opcode
from websockets.protocol import Event, Side, State
from websockets.streams import StreamReader

from anp.channel.admission import Guest
from anp.channel.channel import Channel, nothing, read_clocks
from anp.channel.core.link_core import LinkCore
from anp.channel.stranger_work import StrangerWork
from anp.wire.envelopes import LONG, is_binary

DROP_TIME = 0.5
"Seconds that the other end of a dropped link has to read why."

FAREWELL = "shutting down"
"Said when a link is closed because its daemon stops; others are dialled again."

# The whole messages of the two kinds: all of it in one frame, and nothing reserved set.
_TEXT: Final = 0x80 | Opcode.TEXT
_BINARY: Final = 0x80 | Opcode.BINARY
_MASKED: Final = 0x80
_MASK_SIZE: Final = 4
_PIECE: Final = 64 * 1024
"Bytes of a long message that are masked and written at once; the mask ends with them."

_LENGTH_2: Final = Struct(">H")
_LENGTH_8: Final = Struct(">Q")
_LONG: Final = 64 * 1024
"Bytes from which a copy takes longer than what it saves."

_SMALL: Final = 4 * 1024
"Bytes of a piece of a frame below which it is not kept by itself."

_AT_EOF: Final = StreamReader.at_eof.__code__

# In C, where the library was built with it.
_apply_mask: Final = websocket_frames.apply_mask  # type: ignore[attr-defined]  # no stub


class Pipe:
    """Sends texts in order, at once or, while the other end is slow, by `write`."""

    def __init__(self, connection: PromptConnection) -> None:
        self.connection = connection
        self._outbox: asyncio.Queue[str | bytes | None] = asyncio.Queue()
        self._finished = False
        self._is_due = False

    @property
    def address(self) -> str:
        """The IP address of the other end; empty where there is none."""
        other = self.connection.remote_address
        return str(other[0]) if isinstance(other, tuple) else ""

    @property
    def farewell(self) -> str | None:
        """The reason, in words, of an end by which a daemon stops; None before others.

        What was under way on such a link is not taken up again on another one.
        """
        protocol = self.connection.protocol
        told = protocol.close_rcvd, protocol.close_sent
        if not any(one is not None and one.reason == FAREWELL for one in told):
            return None
        by_peer = protocol.close_rcvd_then_sent
        return "the peer's daemon stopped" if by_peer else "our daemon stops"

    def put(self, text: str | bytes) -> None:
        """Have a message sent: a text, or bytes that `is_binary` tells from one."""
        connection = self.connection
        if (
            connection.paused
            or self._finished
            or connection.protocol.state is not State.OPEN
            or not self._outbox.empty()
        ):
            self._outbox.put_nowait(text)
            return
        # As `Connection.send` does, less the task that would have to wake up for it:
        # nothing waits, so it need not wait either.
        data = text.encode() if isinstance(text, str) else text
        protocol = connection.protocol
        masked = protocol.side is Side.CLIENT
        if len(data) > LONG:
            self._send_long(data, masked=masked)
            return
        frame = b"".join(framed(data, masked=masked))
        if connection.heard and not protocol.writes:
            # The first after something came is mostly its answer, and the only one.
            connection.heard = False
            connection.transport.write(frame)
            return
        protocol.writes.append(frame)
        if not self._is_due:
            self._is_due = True
            connection.loop.call_soon(self._send_put)

    def _send_put(self) -> None:
        """Send with one write all that was put since the last one."""
        self._is_due = False
        connection = self.connection
        if connection.protocol.state is State.OPEN:
            connection.transport.write(b"".join(connection.protocol.data_to_send()))
        else:
            connection.send_data()

    def _send_long(self, data: bytes, *, masked: bool) -> None:
        """Send all that was put, and a long message without another copy of it."""
        self.connection.heard = False
        self._send_put()
        mask = os.urandom(_MASK_SIZE) if masked else b""
        write, view = self.connection.transport.write, memoryview(data)
        write(_head_of(data, masked=masked) + mask)
        for at in range(0, len(data), _PIECE):
            piece = view[at : at + _PIECE]
            write(_apply_mask(piece, mask) if masked else piece)

    def finish(self) -> None:
        """Have `write` return when everything before is sent."""
        self._finished = True
        self._outbox.put_nowait(None)

    async def write(self) -> None:
        """Send what is put, until `finish` or the end of the connection."""
        try:
            while (text := await self._outbox.get()) is not None:
                data = text.encode() if isinstance(text, str) else text
                await self.connection.send(data, text=not is_binary(data))
                self._outbox.task_done()
        except ConnectionClosed:
            # The reader sees the same end and tells everybody.
            return

    async def close(self, code: int, reason: str) -> None:
        """Close the connection; `code` is WebSocket's."""
        # The library aborts the transport of a connection that has ended, and on
        # Python 3.11 that raises when its last bytes were written late.
        if self.connection.state is not State.CLOSED:
            await self.connection.close(code, reason)

    async def drop(self, code: int, reason: str) -> None:
        """Close the connection soon, however slowly its other end reads."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DROP_TIME):
                await self._outbox.join()
                await self.close(code, reason)
        if self.connection.state is not State.CLOSED:
            self.connection.transport.abort()

    def allow(self, size: int) -> None:
        """Take messages of up to `size` bytes; the library ends the link above that."""
        self.connection.protocol.max_message_size = size


class _Begun:
    """The pieces of a message that came so far; they are put together once."""

    def __init__(self, is_text: bool, mask: bytes, size: int) -> None:
        self.is_text = is_text
        self.mask = mask
        self.missing = size
        "Bytes that are still to come."
        self._pieces: list[bytes | bytearray] = []

    def take(self, data: bytes) -> bytes:
        """Take what belongs to the message; return the rest."""
        piece = data[: self.missing]
        self.missing -= len(piece)
        if len(piece) >= _SMALL:
            self._pieces.append(piece)
        elif self._pieces and isinstance(last := self._pieces[-1], bytearray):
            # Each alone would take many times its bytes.
            last += piece
        else:
            self._pieces.append(bytearray(piece))
        return data[len(piece) :]

    def content(self) -> bytes:
        """Return the message, once it is whole; it is not held here any more."""
        content = b"".join(self._pieces)
        self._pieces.clear()
        return bytes(_apply_mask(content, self.mask)) if self.mask else content


class PromptConnection(Connection):
    """A connection that gives a message to its reader as soon as it is there.

    The library reads a frame by several generators, puts it into a queue and wakes up a
    task for it, which takes longer than to decrypt it. So a whole message of one frame
    is given to the reader past all that when it is there. Whatever else
    arrives, what comes while nobody waits in `recv`, and what the reader does not take
    goes the library's way, which decides what is accepted.
    """

    take: Callable[[bytes], bool] | None = None
    "Takes a text, as UTF-8, or a binary message; False: it does not take it now."

    act: Callable[[], None] = staticmethod(nothing)
    """Acts on what was taken. The message is let go of before: it may be long, and what
    it says is then there without it."""

    heard = False
    "True if something came and nothing was sent since; see `Pipe`."

    _begun: _Begun | None = None
    "A frame of which some is missing."

    _between_frames = False
    "True if the library's parser is known to wait for a frame to begin."

    def connection_lost(self, exc: Exception | None) -> None:
        """See the library's class.

        Then what refers to itself here is let go: a connection is freed when it ends,
        since the garbage collector takes tens of milliseconds over a few thousand.
        """
        super().connection_lost(exc)
        self.recv_messages.pause = self.recv_messages.resume = nothing
        self.protocol.parser.close()
        for kept in self.protocol.parser_exc, self.connection_exc:
            if kept is not None:
                kept.__traceback__ = None

    def data_received(self, data: bytes) -> None:
        """See the library's class."""
        if self._begun is not None:
            data = self._begun.take(data)
            if self._begun.missing:
                return
            self._take_begun()
        if data and self.take is not None:
            # Once for all that came together: their answers go out together, too.
            self.heard = True
            data = self._take_whole(data)
        if data:
            self._between_frames = False
            super().data_received(data)

    def _take_begun(self) -> None:
        """Take the message that came in pieces, and is whole now."""
        begun, self._begun = self._begun, None
        assert begun is not None
        is_text, content = begun.is_text, begun.content()
        self.heard = True
        may_take = self._is_prompt and self.protocol.state is State.OPEN
        if may_take and self._taken(content, is_text=is_text):
            # It may be long, and what it says is there without it.
            del content
            self.act()
        else:
            # As the library's parser gives it; nothing it has not read stands before.
            kind = Opcode.TEXT if is_text else Opcode.BINARY
            super().process_event(Frame(kind, content))

    def process_event(self, event: Event) -> None:
        """See the library's class; the messages come in their order either way."""
        if (
            isinstance(event, Frame)
            and event.fin
            and (event.opcode is Opcode.TEXT or event.opcode is Opcode.BINARY)
        ):
            # The library's parser holds a frame until the next one comes, which may be
            # an hour; so what is in it goes on without it.
            data, event.data = bytes(event.data), b""
            is_text = event.opcode is Opcode.TEXT
            if self._is_prompt and self._taken(data, is_text=is_text):
                del data
                self.act()
                return
            event = Frame(event.opcode, data)
        super().process_event(event)

    def _take_whole(self, data: bytes) -> bytes:
        """Take the messages at the beginning of `data`; return what is left of it.

        The beginning of one that is within the limit is kept until the rest is there.
        """
        protocol = self.protocol
        if not self._between_frames:
            if not _is_between(protocol.parser) or protocol.current_size is not None:
                # The library has read a part of a frame, or of a message.
                return data
            self._between_frames = True
        masked, most = protocol.side is Side.SERVER, protocol.max_message_size
        left, size = 0, len(data)
        while left < size and self._is_prompt and protocol.state is State.OPEN:
            found = _whole(data, left, masked=masked)
            if found is None:
                break
            begin, end = found
            if most is not None and end - begin > most:
                break
            is_text = data[left] == _TEXT
            mask = data[begin - _MASK_SIZE : begin] if masked else b""
            if end > size:
                if most is None:
                    break
                self._begun = _Begun(is_text, mask, end - begin)
                self._begun.take(data[begin:])
                return b""
            is_long = end - begin >= _LONG
            content = (memoryview(data) if is_long else data)[begin:end]
            if masked:
                content = _apply_mask(content, mask)
            if not self._taken(bytes(content), is_text=is_text):
                break
            del content
            self.act()
            left = end
        return data[left:] if left else data

    @property
    def _is_prompt(self) -> bool:
        # Nothing that came before is still in the queue, or just out of it.
        waiter = self.recv_messages.frames.get_waiter
        return waiter is not None and not waiter.done()

    def _taken(self, data: bytes, *, is_text: bool) -> bool:
        if self.take is None or is_binary(data) is is_text:
            return False
        return self.take(data)


def _is_between(parser: Any) -> bool:
    """Say if the library's parser waits for a frame to begin."""
    # One generator waits in another; the innermost one tells what for.
    while (within := parser.gi_yieldfrom) is not None:
        parser = within
    return bool(parser.gi_code is _AT_EOF)


def _whole(data: bytes, at: int, *, masked: bool) -> tuple[int, int] | None:
    """Return where the content of a whole message begins and ends, or None.

    It is one frame that begins at `at`, without any reserved bit; it may end behind
    `data`.
    """
    begin = at + (6 if masked else 2)
    if len(data) < begin:
        return None
    kind, size = data[at], data[at + 1]
    if (kind != _TEXT and kind != _BINARY) or (size >= _MASKED) is not masked:
        return None
    size &= _MASKED - 1
    if size >= 126:
        length = _LENGTH_2 if size == 126 else _LENGTH_8
        begin += length.size
        if len(data) < begin:
            return None
        size = length.unpack_from(data, at + 2)[0]
    return begin, begin + size


def framed(data: bytes, *, masked: bool) -> tuple[bytes, bytes]:
    """Return a message as one frame, which the library would make more slowly.

    Returns:
        The head of the frame, and its content.
    """
    head = _head_of(data, masked=masked)
    if not masked:
        return head, data
    mask = os.urandom(_MASK_SIZE)
    return head + mask, _apply_mask(data, mask)


def _head_of(data: bytes, *, masked: bool) -> bytes:
    """Return the beginning of a message's one frame, up to its mask."""
    kind, bit = _BINARY if is_binary(data) else _TEXT, _MASKED if masked else 0
    size = len(data)
    if size < 126:
        return bytes((kind, bit | size))
    if size < 2**16:
        return bytes((kind, bit | 126)) + _LENGTH_2.pack(size)
    return bytes((kind, bit | 127)) + _LENGTH_8.pack(size)


class Reader:
    """Gives the messages of a connection to the core of its link, each at its turn.

    Args:
        channels: Those of the link, by their ids; read anew each time.
        pump: Carries out what the core says.
        guest: The place of a connection that the peer opened.
        strangers: The work for strangers, which gives way to what comes on a connection
            that we opened.
    """

    def __init__(
        self,
        connection: PromptConnection,
        core: LinkCore,
        *,
        channels: Mapping[str, Channel],
        pump: Callable[[], None],
        guest: Guest | None,
        strangers: StrangerWork | None,
    ) -> None:
        self._connection = connection
        self._core = core
        self._channels = channels
        self._pump = pump
        self._guest = guest
        self._strangers = guest.admission.work if guest is not None else strangers
        self.held = False
        "Set to take no more messages until the core and all channels can go on."
        self._settled = asyncio.Event()

    async def read(self) -> None:
        """Read until the connection ends.

        Raises:
            ConnectionClosed: It did not end well.
        """
        self._connection.take, self._connection.act = self._take, self._pump
        with contextlib.suppress(ConnectionClosedOK):
            while True:
                text = await self._connection.recv()
                # The rest waits on the network, not in our memory.
                await self._released()
                if self._guest is not None:
                    self._guest.read(len(text))
                    if self._guest.stranger:
                        # Others have their turn even when there is nothing to wait for.
                        await asyncio.sleep(0)
                # It may be long: nobody else holds it while it is acted on.
                held = [text]
                del text
                await self.turn(partial(self._receive, held))

    def let_go(self) -> None:
        """Do nothing more for the link, which has ended."""
        self._connection.take, self._connection.act = None, nothing
        self._pump = nothing

    def settle(self) -> None:
        """Go on if the core does not wait for anything any more."""
        if not self._core.waits:
            self._settled.set()

    async def turn(self, piece: Callable[[], None]) -> None:
        """Do what the peer wants done; work for a stranger waits for its turn."""
        if self._guest is not None:
            await self._guest.done(piece)
            return
        if self._strangers is not None:
            self._strangers.give_way()
        piece()

    async def _released(self) -> None:
        while self.held:
            while self._core.waits:
                self._settled.clear()
                await self._settled.wait()
            self.held = False
            for channel in [*self._channels.values()]:
                await channel.caught_up()

    def _receive(self, held: list[str | bytes]) -> None:
        """Take the one message in `held`, and act on it, in one turn of the peer's."""
        self._core.receive_text(held.pop(), now=read_clocks())
        self._pump()

    def _take(self, data: bytes) -> bool:
        """Take an envelope at once, unless something before it is still under way.

        Of a stranger it is the first one of what is read at its turn.
        """
        guest = self._guest
        if self.held or (guest is not None and not guest.takes_turn()):
            return False
        if not self._core.receive_envelope(data, now=read_clocks()):
            return False
        if guest is not None and guest.stranger:
            guest.read(len(data))
        elif self._strangers is not None:
            self._strangers.give_way()
        return True
