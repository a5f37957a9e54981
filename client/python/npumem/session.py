"""A session that can continue over another connection: its token from the daemon, the requests, segments and lists that
the next daemon must get, and the attempts to reconnect. Without a token nothing is kept, and the session ends with its
connection."""

from __future__ import annotations

import enum
import math
import os
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

from . import npumem_pb2 as pb
from .transport import Transport

AGAIN_BYTES = 3  # the length of Request.again
WAITS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)  # seconds
REMOTE_TIMES = 20  # over ssh, WAITS times this: each attempt costs both hosts a login
FRUITLESS_MAX = 32  # connections without an answer: a request that ends each daemon must not be sent for ever


class State(enum.Enum):
    NEVER = 0  # there is no token, and none will come
    ASKED = 1  # a token was asked for
    READY = 2
    AWAY = 3  # without a connection
    KNOCKS = 4  # connected, and the daemon has not accepted the token yet


@dataclass
class Unanswered:
    """A request without an answer, which is sent again to the next daemon."""

    request: pb.Request
    n_bytes: int
    fds: list[int]


class Session:
    """patience  seconds for which a lost connection tries to reconnect; None: as long as the daemon keeps sessions; 0:
    it does not try"""

    def __init__(self, transport: Transport, patience: Optional[float] = None) -> None:
        self.transport = transport
        self._patience = patience
        self.state = State.NEVER
        self.token = b""
        self.limit = math.inf
        self.own: set[int] = set()  # ids of requests whose answers are for this class
        self.kept: dict[int, Unanswered] = {}
        self.bytes_kept = 0
        self.segments: dict[int, int] = {}  # the fds of segments that the daemon maps, by id
        self.lists: dict[int, pb.KeepRequest] = {}  # lists that the daemon keeps, by id
        self.subscribed: Optional[pb.SubscribeRequest] = None
        self._next = math.inf
        self._n_tries = 0
        self._n_fruitless = 0
        self._why = ""

    @property
    def keeps(self) -> bool:
        return self.state is not State.NEVER

    @property
    def away(self) -> bool:
        """Whether there is no connection for requests."""
        return self.state in (State.AWAY, State.KNOCKS)

    # ---- the token ----

    def asks(self, sock: socket.socket) -> bool:
        """Whether the first message asks for a token."""
        if self._patience == 0:
            return False
        self.state = State.ASKED
        self.transport.knows(sock)
        return True

    def granted(self, response: pb.Response) -> bool:
        resumed = response.resumed
        if response.status != pb.OK or not resumed.token or not resumed.resume_seconds:
            self.forget()
            return False
        self.token = resumed.token
        if self._patience is None:
            self._patience = float(resumed.resume_seconds)
        self.state = State.READY
        self.limit = self._next = math.inf
        if not self.kept:
            self._n_fruitless = 0
        return True

    def forget(self) -> None:
        for fd in [fd for kept in self.kept.values() for fd in kept.fds] + list(self.segments.values()):
            os.close(fd)
        self.kept.clear()
        self.segments.clear()
        self.lists.clear()
        self.bytes_kept = 0
        self.state = State.NEVER
        self.limit = self._next = math.inf

    # ---- requests ----

    def keep(self, request: pb.Request, n_bytes: int, fds: Sequence[int]) -> None:
        self.kept[request.id] = Unanswered(request, n_bytes, [os.dup(fd) for fd in fds])
        self.bytes_kept += n_bytes
        if not self.away:
            request.again = True  # if it is sent a second time

    def settle(self, response: pb.Response) -> None:
        """Forgets a request that is answered, and notes what the next daemon must get because of it."""
        kept = self.kept.pop(response.id, None)
        if kept is None:
            return
        self._n_fruitless = 0
        self.bytes_kept -= kept.n_bytes
        if response.status == pb.OK and kept.request.HasField("share"):
            self.segments[response.shared.segment] = kept.fds.pop()
        elif response.status == pb.OK and kept.request.HasField("unshare"):
            fd = self.segments.pop(kept.request.unshare.segment, None)
            if fd is not None:
                os.close(fd)
        elif response.status == pb.OK and kept.request.HasField("keep"):
            self.lists[kept.request.keep.list] = kept.request.keep
        elif response.status == pb.OK and kept.request.HasField("unkeep"):
            self.lists.pop(kept.request.unkeep.list, None)
        elif response.status == pb.OK and kept.request.HasField("subscribe"):
            self.subscribed = kept.request.subscribe
        for fd in kept.fds:
            os.close(fd)

    # ---- without a connection ----

    def due(self) -> float:
        """The time of the next step that does not depend on the socket."""
        return min(self._next, self.limit) if self.state is State.AWAY else self.limit

    def lost(self, why: str) -> bool:
        """The connection has ended. Returns whether to reconnect."""
        if self.state in (State.NEVER, State.ASKED) or self._n_fruitless >= FRUITLESS_MAX:
            return False
        self._set_limit(why)
        if self.state is State.READY:
            self._n_tries = 0
            self._n_fruitless += 1
        self.state = State.AWAY
        self.own.clear()
        self._wait()
        return True

    def going(self) -> bool:
        """The daemon is going down. Returns whether to wait for its end and reconnect."""
        if self.state not in (State.READY, State.KNOCKS):
            return False
        self._set_limit("the daemon is going down, and does not end")
        return True

    def late(self) -> str:
        return f"the connection to the daemon ended, and no daemon at {self.transport.name} continues the session: {self._why}"

    def _set_limit(self, why: str) -> None:
        self._why = why
        if self.limit == math.inf:
            self.limit = time.monotonic() + (self._patience or 0.0)

    def _wait(self) -> None:
        seconds = WAITS[min(self._n_tries, len(WAITS) - 1)]
        self._next = time.monotonic() + seconds * (REMOTE_TIMES if self.transport.is_remote else 1)
        self._n_tries += 1

    def tried(self) -> Optional[socket.socket]:
        """Tries to reconnect if the time for it has come; does not wait. None: there is no connection yet."""
        if self.state is not State.AWAY or time.monotonic() >= self.limit:
            return None
        try:
            sock = self.transport.connect()
        except OSError as problem:
            self._why = str(problem)
            self._wait()
            return None
        self.state = State.KNOCKS
        return sock
