"""Messages over the socket, and requests without an answer. One thread at a time may use a connection.

Sending never waits for the daemon alone: while it does not read, its answers are taken in, so that any number of
requests may be sent before the first answer is asked for."""

from __future__ import annotations

import collections
import math
import os
import select
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any, Generic, Optional, TypeVar

from google.protobuf.message import DecodeError

from . import npumem_pb2 as pb
from ._rows import METHODS
from .errors import DeadlineExceeded, Status, Unavailable, refusal
from .session import AGAIN_BYTES, Session, State
from .transport import Transport

T = TypeVar("T")
U = TypeVar("U")

FRAME_BYTES_MAX = 16 << 20
RECEIVE_BYTES = 1 << 18
EVENTS_MAX = 4096  # unread events that are kept
# Requests whose results the daemon keeps until the client has them.
WITH_RESULT = frozenset(name for name, keeps in METHODS if keeps != "NOTHING")
UNSENT_BYTES_MAX = 8 << 20  # beyond this, send waits until the daemon has taken some


def encode_length(n: int) -> bytes:
    """The length as a varint."""
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def decode_length(buffer: bytearray) -> tuple[int, int]:
    """A message's length and that of its varint, which is 0 while the varint is incomplete. ValueError: no varint."""
    length = 0
    for used, byte in enumerate(buffer[:10]):
        length |= (byte & 0x7F) << (7 * used)
        if byte < 0x80:
            return length, used + 1
    if len(buffer) >= 10:
        raise ValueError("a length of more than 10 bytes")
    return 0, 0


def is_of_the_end(response: pb.Response) -> bool:
    """Whether the daemon is going down: it takes no more requests, and the connection ends."""
    return response.status == pb.UNAVAILABLE and any(field.key == "going_down" for field in response.fields)


class Pending(Generic[T]):
    """A request that was sent. Requests take effect on a tensor in the order sent; answers may come in another
    order."""

    def __init__(self, wire: Wire, number: int, convert: Callable[[pb.Response], T], keep: object = None) -> None:
        self._wire = wire
        self._number = number
        self._convert = convert
        self._keep = keep  # memory that the daemon uses until the answer
        self._response: Optional[pb.Response] = None
        self._taken: list[T] = []

    def done(self) -> bool:
        """Whether the answer has come. Does not wait."""
        if self._response is None:
            self._wire.look()
        return self._response is not None

    def result(self, timeout: Optional[float] = None) -> T:
        """Waits for the answer, for at most `timeout` seconds (None: without a limit), and returns the result of the
        call. DeadlineExceeded after that time; the request goes on. Refused if the daemon refused it."""
        if self._taken:
            return self._taken[0]
        if self._response is None:
            self._wire.wait(lambda: self._response is not None, timeout)
        assert self._response is not None
        self._taken.append(self._convert(self._response))
        return self._taken[0]

    def cancel(self) -> None:
        """Cancels the request, and does not wait. result() then raises Refused with Status.CANCELLED. A request that
        can no longer be stopped gets its usual answer."""
        if self._response is None:
            self._wire.send("cancel", pb.CancelRequest(request_id=self._number), lambda response: None, waits=False)

    def settle(self, response: pb.Response) -> None:
        self._response = response
        self._keep = None


class Several(Pending[U], Generic[T, U]):
    """Several requests that are one call of the caller. Their results are combined when all are answered."""

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
    """Frames in both directions over a connected socket, which it owns. If the daemon gave a token for the session, it
    reconnects when the connection ends: see session.py."""

    def __init__(self, sock: socket.socket, session: Optional[Session] = None) -> None:
        sock.setblocking(False)
        self._sock: Optional[socket.socket] = sock
        self._out: collections.deque[tuple[memoryview, Sequence[int]]] = collections.deque()
        self._in = bytearray()
        self._number = 0
        self._pending: dict[int, Pending[Any]] = {}
        self._over = ""  # the reason why the connection is over; or empty
        self._ending = ""  # the daemon's reason for ending it; or empty
        self._session = session or Session(Transport(), 0)
        self._greeted = False  # the first bytes are a daemon's
        self.events: collections.deque[pb.Event] = collections.deque()
        self.timeout: Optional[float] = None  # of waits in send

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
        """Sends a member of Request.call. Bytes that the socket does not take at once are sent by the next look or
        wait; if they are many, send waits. `fds` are duplicated; `keep` lives until the answer."""
        request = pb.Request(id=self._number + 1, **{call: message})
        keeps = self._session.keeps
        if keeps and call in WITH_RESULT:
            request.answered_below = next(iter(self._pending), request.id)
        data = request.SerializeToString()
        if len(data) + keeps * AGAIN_BYTES > FRAME_BYTES_MAX:
            raise ValueError(f"a request of {len(data)} bytes; {FRAME_BYTES_MAX} go into one")
        if self._over:
            raise Unavailable(Status.UNAVAILABLE, self._over)
        self._number += 1
        if not self._session.away:
            self._put(data, fds)
        if keeps:
            self._session.keep(request, len(data), fds)
        pending = self._pending[self._number] = Pending(self, self._number, convert, keep)
        self._step()
        if waits and self._unsent() > UNSENT_BYTES_MAX:
            self.wait(lambda: self._unsent() <= UNSENT_BYTES_MAX, self.timeout)
        return pending

    def _put(self, data: bytes, fds: Sequence[int]) -> None:
        self._out.append((memoryview(encode_length(len(data)) + data), [os.dup(fd) for fd in fds]))

    def _own(self, fds: Sequence[int] = (), **call: Any) -> None:
        """Sends a request whose answer is for the session."""
        self._number += 1
        self._session.own.add(self._number)
        self._put(pb.Request(id=self._number, **call).SerializeToString(), fds)

    def look(self) -> None:
        """Reads and writes as much as the socket allows without waiting."""
        if not self._over:
            self._step()

    def wait(self, condition: Callable[[], bool], timeout: Optional[float]) -> None:
        """Waits until the condition holds; only messages change it. DeadlineExceeded, Unavailable."""
        end = None if timeout is None else time.monotonic() + timeout
        self.look()
        while not condition():
            if self._over:
                raise Unavailable(Status.UNAVAILABLE, self._over)
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                raise DeadlineExceeded(Status.DEADLINE_EXCEEDED, f"no answer within {timeout:g} s")
            self._poll(left)

    def close(self, why: str = "") -> None:
        """`why` is the reason if the user did not close the connection."""
        if self._sock is None:
            return
        if not why:
            self._part()
        self._over = self._over or why or "the connection is closed"
        self._sock.close()
        self._sock = None
        self._session.transport.hang_up(waits=not why)
        self._drop_unsent()
        self._session.forget()
        for pending in list(self._pending.values()):
            pending.settle(pb.Response(status=pb.UNAVAILABLE, message=self._over))
        self._pending.clear()

    def ask_for_token(self) -> None:
        """Asks for a session's token, with the next messages. The daemon must have FEATURE_RESUME."""
        assert self._sock is not None
        if self._session.asks(self._sock):
            self._own(resume=pb.ResumeRequest(linger=self._session.transport.is_remote))

    def _part(self) -> None:
        """Tells a daemon on another host that the session does not continue."""
        if self._session.state is State.READY and self._session.transport.is_remote:
            self._own(resume=pb.ResumeRequest())
            self._flush()

    def forget(self) -> None:
        """The session ends with this connection."""
        self._session.forget()

    # ---- another connection ----

    def _lost(self, why: str) -> None:
        """The connection has ended: prepares to reconnect, or closes."""
        if not self._session.lost(why):
            self.close(why)
            return
        assert self._sock is not None
        self._sock.close()
        self._session.transport.hang_up()
        self._drop_unsent()
        self._in.clear()
        self._greeted = False
        self._ending = ""

    def _look_for_another(self) -> None:
        sock = self._session.tried()
        if sock is not None:
            self._sock = sock
            remote = self._session.transport.is_remote
            self._own(resume=pb.ResumeRequest(token=self._session.token, linger=remote))
        elif time.monotonic() >= self._session.limit:
            self.close(self._session.late())

    def _go_on(self) -> None:
        """Sends segments, subscription and lists again, then the requests that may use them, in the order sent."""
        for segment, fd in self._session.segments.items():
            self._own([fd], share=pb.ShareRequest(segment=segment))
        if self._session.subscribed is not None:
            self._own(subscribe=self._session.subscribed)
        for keep in self._session.lists.values():
            self._own(keep=keep)
        for kept in self._session.kept.values():
            self._put(kept.request.SerializeToString(), kept.fds)
            kept.request.again = True

    def _take_own(self, response: pb.Response) -> None:
        """Takes an answer that is for the session."""
        session = self._session
        if session.state is State.ASKED:
            session.granted(response)
        elif session.state is State.READY:
            if response.status not in (pb.OK, pb.UNAVAILABLE):
                self.close(f"the daemon has not taken back what the session had: {response.message}")
        elif response.status == pb.UNAVAILABLE:  # the daemon is going down, or the old connection still ends
            self._lost(response.message)
        elif response.status == pb.NOT_FOUND:
            self.close("the daemon was restarted without this session")
        elif response.status != pb.OK or not session.granted(response):
            self.close(f"the daemon does not go on with this session: {response.message or 'it gave no token'}")
        else:
            self._go_on()

    # ---- bytes ----

    def _poll(self, seconds: Optional[float]) -> None:
        assert self._sock is not None
        poll = select.poll()
        if self._session.state is not State.AWAY:
            poll.register(self._sock, select.POLLIN | (select.POLLOUT if self._out else 0))
        due = self._session.due() - time.monotonic()
        if seconds is None or due < seconds:
            seconds = None if due == math.inf else max(0.0, due)
        # Rounded up: else poll would return many times within the last millisecond.
        poll.poll(None if seconds is None else int(seconds * 1000) + 1)
        self._step()

    def _step(self) -> None:
        try:
            if self._session.due() <= time.monotonic():
                self._look_for_another()
            if self._session.state is State.AWAY or self._sock is None:
                return
            self._flush()
            self._receive()
        except (ConnectionResetError, BrokenPipeError):
            self._ended()
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
            self._drop_unsent()  # its last messages may still be in the socket

    def _unsent(self) -> int:
        if self._session.away:
            return self._session.bytes_kept
        return sum(len(data) for data, _ in self._out)

    def _drop_unsent(self) -> None:
        while self._out:
            self._release(self._out.popleft())

    @staticmethod
    def _release(item: tuple[memoryview, Sequence[int]]) -> None:
        for fd in item[1]:
            os.close(fd)

    def _receive(self) -> None:
        sock = self._sock
        while sock is not None and self._sock is sock and self._session.state is not State.AWAY:
            try:
                data = sock.recv(RECEIVE_BYTES)
            except BlockingIOError:
                return
            if not data:
                self._ended()
                return
            self._in += data
            self._take()

    def _ended(self) -> None:
        if self._ending:
            self._lost(self._ending)
        else:
            self._lost(self._session.transport.explain("the daemon has hung up"))

    def _take(self) -> None:
        """Handles all complete messages."""
        if not self._greeted and not self._session.transport.greeted(bytes(self._in[:64])):
            return
        self._greeted = True
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
        if response.id in self._session.own:
            self._session.own.remove(response.id)
            self._take_own(response)
        elif response.id and self._session.away:
            raise ValueError(f"an answer to request {response.id} before the session goes on")
        elif response.id:
            if is_of_the_end(response) and self._session.going():
                return  # the request counts as not answered
            pending = self._pending.pop(response.id, None)
            if pending:
                self._session.settle(response)
                pending.settle(response)
        elif response.HasField("event"):
            self._event(response.event)
        elif response.status == pb.UNAVAILABLE or self._session.state is State.KNOCKS:
            self._ending = response.message or "the daemon ends the connection"
            if not self._session.going():
                self.close(self._ending)
        elif response.status != pb.OK:
            self.close(response.message or "the daemon ends the connection")

    def _event(self, event: pb.Event) -> None:
        self.events.append(event)
        if len(self.events) > EVENTS_MAX:
            lost = self.events.popleft()
            self.events[0].lost += lost.lost + 1


def answered(response: pb.Response) -> pb.Response:
    """The response if its status is OK; else raises Refused."""
    if response.status != pb.OK:
        raise refusal(response)
    return response
