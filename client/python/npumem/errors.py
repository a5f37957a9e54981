"""The errors of the daemon and of the connection. A wrong call (an array of another shape, an unknown kernel) is a
ValueError or TypeError instead, and nothing is sent."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Union

from . import npumem_pb2 as pb

if TYPE_CHECKING:
    from .operations import Done


class Status(enum.IntEnum):
    """Why a request was refused. The numbers are those of gRPC's codes."""

    CANCELLED = 1
    INVALID = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOST = 15


class DeviceWarning(UserWarning):
    """A warning; the call returns its result. Data that were read are damaged or were never written; a kernel destroyed
    data of another tensor; or values were saturated when they were quantized."""


class Refused(Exception):
    """The daemon refused a request. It has changed nothing unless the call says otherwise.

    status   a Status, or a plain int that this version does not know
    message  the reason, in one line
    fields   the reason, for programs: numbers and texts by name
    done     of a batch or kept list: a Done for each operation that ran before the refused one; else empty
    """

    def __init__(
        self,
        status: int,
        message: str,
        fields: Mapping[str, Union[int, str]] = {},
        done: Sequence[Done] = (),
    ) -> None:
        super().__init__(message)
        self.status: int = Status(status) if status in Status._value2member_map_ else status
        self.message = message
        self.fields = dict(fields)
        self.done = tuple(done)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (int(self.status), self.message, self.fields, self.done)


class DeadlineExceeded(Refused, TimeoutError):
    """A call took longer than Device.timeout. Its request was cancelled, but it may have been carried out. The
    connection can still be used. An allocation with wait= that got no room in that time raises this, too; it was not
    carried out. Pending.result(timeout) raises it without cancelling the request."""


class Unavailable(Refused, ConnectionError):
    """No daemon was found, or the connection is over and can only be closed."""


def refusal(response: pb.Response, done: Sequence[Done] = ()) -> Refused:
    """The exception for a Response whose status is not OK."""
    fields = {field.key: field.text if field.HasField("text") else field.number for field in response.fields}
    kind: type[Refused] = Refused
    if response.status == pb.DEADLINE_EXCEEDED:
        kind = DeadlineExceeded
    elif response.status == pb.UNAVAILABLE:
        kind = Unavailable
    return kind(response.status, response.message, fields, done)
