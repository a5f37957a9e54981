"""Messages over the socket, and requests under way. One thread at a time for a connection.

Sending never waits for the daemon alone: while it does not read, its answers are taken in, so that any number of
requests may be sent before the first answer is asked for."""

from __future__ import annotations

import collections
import os
import select
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any, Generic, Optional, TypeVar

from google.protobuf.message import DecodeError

from . import npumem_pb2 as pb
from .errors import DeadlineExceeded, Status, Unavailable, refusal

T = TypeVar("T")
U = TypeVar("U")

FRAME_BYTES_MAX = 16 << 20
RECEIVE_BYTES = 1 << 18
EVENTS_MAX = 4096  # kept for who does not ask
UNSENT_BYTES_MAX = 8 << 20  # of requests that the daemon has not taken yet, before more may be sent


def encode_length(n: int) -> bytes:
    """A varint."""
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def decode_length(buffer: bytearray) -> tuple[int, int]:
    """A message's length, and that of the varint itself: 0 while that is not whole. ValueError where it is none."""
    length = 0
    for used, byte in enumerate(buffer[:10]):
        length |= (byte & 0x7F) << (7 * used)
        if byte < 0x80:
            return length, used + 1
    if len(buffer) >= 10:
        raise ValueError("a length of more than 10 bytes")
    return 0, 0


class Pending(Generic[T]):
    """A request under way. What was sent before takes effect on a tensor before; the answer may come in any order."""

    def __init__(self, wire: Wire, number: int, convert: Callable[[pb.Response], T], keep: object = None) -> None:
        self._wire = wire
        self._number = number
        self._convert = convert
        self._keep = keep  # memory that the daemon works on
        self._response: Optional[pb.Response] = None
        self._taken: list[T] = []

    def done(self) -> bool:
        """Whether it is answered; looks, and does not wait."""
        if self._response is None:
            self._wire.look()
        return self._response is not None

    def result(self, timeout: Optional[float] = None) -> T:
        """Waits for the answer, for `timeout` seconds at most (None: as long as it takes); DeadlineExceeded then, and
        it is still under way. Refused where the daemon refused it."""
        if self._taken:
            return self._taken[0]
        if self._response is None:
            self._wire.wait(lambda: self._response is not None, timeout)
        assert self._response is not None
        self._taken.append(self._convert(self._response))
        return self._taken[0]

    def cancel(self) -> None:
        """Takes it back where it is not done; result() then raises Refused with Status.CANCELLED. What can no longer
        be stopped is answered as ever. Does not wait."""
        if self._response is None:
            self._wire.send("cancel", pb.CancelRequest(request_id=self._number), lambda response: None, waits=False)

    def settle(self, response: pb.Response) -> None:
        self._response = response
        self._keep = None


class Several(Pending[U], Generic[T, U]):
    """Requests under way that are one for the caller: combined once all are answered."""

    def __init__(self, parts: Sequence[Pending[T]], combine: Callable[[list[T]], U]) -> None:
        self._parts = parts
        self._combine = combine

    def done(self) -> bool:
        return all([part.done() for part in self._parts])

    def result(self, timeout: Optional[float] = None) -> U:
        end = None if timeout is None else time.monotonic() + timeout
        return self._combine(
            [part.result(None if end is None else max(0.0, end - time.monotonic())) for part in self._parts]
        )

    def cancel(self) -> None:
        for part in self._parts:
            part.cancel()


class Wire:
    """Frames both ways over a connected socket, which it takes over."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock: Optional[socket.socket] = sock
        self._out: collections.deque[tuple[memoryview, Sequence[int]]] = collections.deque()
        self._in = bytearray()
        self._number = 0
        self._pending: dict[int, Pending[Any]] = {}
        self._over = ""  # why
        self.events: collections.deque[pb.Event] = collections.deque()
        self.timeout: Optional[float] = None  # of a wait for room to send

    # ---- requests ----

    def send(
        self,
        call: str,
        message: Any,
        convert: Callable[[pb.Response], T],
        *,
        fds: Sequence[int] = (),
        keep: object = None,
        waits: bool = True,
    ) -> Pending[T]:
        """Sends a member of Request.call. What the socket does not take at once goes with the next look or wait, and
        where that is much it waits here. `fds` are duplicated; `keep` lives until the answer."""
        self._number += 1
        data = pb.Request(id=self._number, **{call: message}).SerializeToString()
        if len(data) > FRAME_BYTES_MAX:
            raise ValueError(f"a request of {len(data)} bytes; {FRAME_BYTES_MAX} go into one")
        if self._over:
            raise Unavailable(Status.UNAVAILABLE, self._over)
        pending = Pending(self, self._number, convert, keep)
        self._pending[self._number] = pending
        self._out.append((memoryview(encode_length(len(data)) + data), [os.dup(fd) for fd in fds]))
        self._step()
        if waits and self._unsent() > UNSENT_BYTES_MAX:
            self.wait(lambda: self._unsent() <= UNSENT_BYTES_MAX, self.timeout)
        return pending

    def look(self) -> None:
        """Takes and sends what can be without waiting."""
        if not self._over:
            self._step()

    def wait(self, condition: Callable[[], bool], timeout: Optional[float]) -> None:
        """Until the condition holds, which only what comes in changes. DeadlineExceeded, Unavailable."""
        end = None if timeout is None else time.monotonic() + timeout
        self.look()
        while not condition():
            if self._over:
                raise Unavailable(Status.UNAVAILABLE, self._over)
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                raise DeadlineExceeded(Status.DEADLINE_EXCEEDED, f"no answer within {timeout:g} s")
            self._poll(left)

    def close(self, why: str = "the connection is closed") -> None:
        if self._sock is None:
            return
        self._over = self._over or why
        self._sock.close()
        self._sock = None
        self._drop_unsent()
        for pending in list(self._pending.values()):
            pending.settle(pb.Response(status=pb.UNAVAILABLE, message=self._over))
        self._pending.clear()

    # ---- bytes ----

    def _poll(self, seconds: Optional[float]) -> None:
        assert self._sock is not None
        poll = select.poll()
        poll.register(self._sock, select.POLLIN | (select.POLLOUT if self._out else 0))
        # Rounded up, so that it does not ask again and again in the last millisecond.
        poll.poll(None if seconds is None else int(seconds * 1000) + 1)
        self._step()

    def _step(self) -> None:
        try:
            self._flush()
            self._receive()
        except (OSError, ValueError, DecodeError) as problem:
            self.close(f"the connection to the daemon broke: {problem}")

    def _flush(self) -> None:
        assert self._sock is not None
        try:
            while self._out:
                data, fds = self._out[0]
                n = socket.send_fds(self._sock, [data], list(fds)) if fds else self._sock.send(data)
                self._release((data, fds))
                if n == len(data):
                    self._out.popleft()
                else:
                    self._out[0] = (data[n:], ())
        except BlockingIOError:
            pass
        except (BrokenPipeError, ConnectionResetError):
            self._drop_unsent()  # what it said last may still be there to be read

    def _unsent(self) -> int:
        return sum(len(data) for data, _ in self._out)

    def _drop_unsent(self) -> None:
        while self._out:
            self._release(self._out.popleft())

    @staticmethod
    def _release(item: tuple[memoryview, Sequence[int]]) -> None:
        for fd in item[1]:
            os.close(fd)

    def _receive(self) -> None:
        while self._sock is not None:
            try:
                data = self._sock.recv(RECEIVE_BYTES)
            except BlockingIOError:
                return
            if not data:
                self.close("the daemon has hung up")
                return
            self._in += data
            self._take()

    def _take(self) -> None:
        """The messages that are whole."""
        at = 0
        while at < len(self._in):
            length, used = decode_length(self._in[at : at + 10])
            if length > FRAME_BYTES_MAX:
                raise ValueError(f"a message of {length} bytes")
            if not used or len(self._in) < at + used + length:
                break
            with memoryview(self._in) as view:
                data = bytes(view[at + used : at + used + length])
            at += used + length
            self._handle(pb.Response.FromString(data))
        del self._in[:at]

    def _handle(self, response: pb.Response) -> None:
        if response.id:
            pending = self._pending.pop(response.id, None)
            if pending:
                pending.settle(response)
        elif response.HasField("event"):
            self._event(response.event)
        elif response.status != pb.OK:
            self.close(response.message or "the daemon ends the connection")

    def _event(self, event: pb.Event) -> None:
        self.events.append(event)
        if len(self.events) > EVENTS_MAX:
            lost = self.events.popleft()
            self.events[0].lost += lost.lost + 1


def answered(response: pb.Response) -> pb.Response:
    """The response, where it is OK."""
    if response.status != pb.OK:
        raise refusal(response)
    return response
