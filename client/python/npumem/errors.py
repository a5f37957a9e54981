"""What can go wrong with the daemon. What is wrong with a call itself (an array of another shape, a kernel that there
is not) is a ValueError or TypeError, and nothing was sent then."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Union

from . import npumem_pb2 as pb

if TYPE_CHECKING:
    from .operations import Done


class Status(enum.IntEnum):
    """Why a request was refused: the numbers of gRPC's codes."""

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
    """An answer came with a warning: what was read is damaged or was never written, values were saturated."""


class Refused(Exception):
    """The daemon refused a request, which has changed nothing unless the call says otherwise.

    status   a Status, or a plain int that this version does not know
    message  why, in one line
    fields   why, for programs: numbers and texts by name
    done     of a submit: what the operations did that ran before the refused one
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
    """The time of a call was over. It was taken back, and whether it was done is unknown; the connection is good. (An
    allocation that stood in line for long enough is answered so, too, and was not done.)"""


class Unavailable(Refused, ConnectionError):
    """There is no daemon, or the connection is over and can only be closed."""


def refusal(response: pb.Response, done: Sequence[Done] = ()) -> Refused:
    """The exception that a Response without OK stands for."""
    fields = {field.key: field.text if field.HasField("text") else field.number for field in response.fields}
    kind: type[Refused] = Refused
    if response.status == pb.DEADLINE_EXCEEDED:
        kind = DeadlineExceeded
    elif response.status == pb.UNAVAILABLE:
        kind = Unavailable
    return kind(response.status, response.message, fields, done)
