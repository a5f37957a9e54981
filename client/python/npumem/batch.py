"""Many operations in one request."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Callable, Optional, Union

import numpy as np
import numpy.typing as npt

from . import npumem_pb2 as pb
from .errors import refusal
from .formats import Array
from .kernel import reference, run_request
from .operations import (
    Done,
    done_of,
    fill_request,
    into,
    is_dense,
    read_request,
    shared_request,
    write_request,
)
from .tensor import Tensor
from .wire import Pending

if TYPE_CHECKING:
    from .device import Device, Operand


class Read:
    """What a batch is to read."""

    def __init__(self) -> None:
        self._value: Optional[Array] = None

    @property
    def value(self) -> Array:
        """The array, once its batch has run this read."""
        if self._value is None:
            raise ValueError("the batch has not run this read")
        return self._value


class Batch:
    """Operations that go to the daemon as one request at the end of the block, and run in order:

        with dev.submit() as batch:
            batch.write(x, array)
            batch.run("relu", in_=x, out=y, relu="gen")
            result = batch.read(y)
        result.value, batch.done[1].saturated

    Where one names a tensor that is not there, nothing runs. What an operation is refused for in its turn ends the
    list: Refused.done tells what ran. At most 1024 operations, 16 MiB of data (those of Device.empty do not count) and
    12288 fields; the data of all reads must fit 16 MiB, too. Nothing is sent where the block ends by an exception."""

    def __init__(self, device: Device, wait: bool, dry_run: bool = False) -> None:
        self._device = device
        self._wait = wait
        self._call = "dry_run" if dry_run else "submit"
        self._operations: list[pb.Operation] = []
        self._takers: list[Callable[[pb.Done], Done]] = []
        self._keep: list[Any] = []
        self._group = 0
        self._label = ""
        self._n_groups = 0
        self._pending: Optional[Pending[pb.Response]] = None
        self.done: tuple[Done, ...] = ()  # of the operations, once they ran

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._send()
            if self._wait:
                self.result()

    def __len__(self) -> int:
        return len(self._operations)

    @contextlib.contextmanager
    def parallel(self) -> Iterator[None]:
        """The operations of this block are a parallel group: its DMA and its kernels run at once. Where one queue
        writes what the other uses the whole group is refused, naming both. At most 256 operations."""
        if self._group:
            raise ValueError("a parallel group within another")
        self._n_groups += 1
        self._group = self._n_groups
        try:
            yield
        finally:
            self._group = 0

    @contextlib.contextmanager
    def label(self, label: str) -> Iterator[None]:
        """What refusals, events and stat call the operations of this block: at most 63 printable ASCII characters."""
        before, self._label = self._label, label
        try:
            yield
        finally:
            self._label = before

    def _add(self, take: Callable[[pb.Done], Done] = done_of, **kind: Any) -> None:
        if self._pending is not None:
            raise ValueError("the batch was sent")
        self._operations.append(pb.Operation(group=self._group, label=self._label, **kind))
        self._takers.append(take)

    def write(self, tensor: Tensor, array: npt.ArrayLike, *, rounding: Optional[str] = None) -> None:
        """As Tensor.write."""
        values = tensor.format.taken(array, rounding or self._device.rounding)
        shared = shared_request(pb.WriteRequest, tensor.ref, values, self._device.memory)
        self._keep.append(values)
        self._add(write=shared if shared is not None else write_request(tensor.ref, values, 0, values.size))

    def read(self, tensor: Tensor, out: Optional[Array] = None, *, real: bool = False) -> Read:
        """As Tensor.read; the array is in the result's `value` when the batch has run."""
        if out is not None:
            tensor.check_out(out)
        shared = shared_request(pb.ReadRequest, tensor.ref, out, self._device.memory)
        dense = out is not None and (shared is not None or is_dense(out))
        values: Array = out if dense and out is not None else np.empty(tensor.shape, tensor.format.container)
        result = Read()

        def take(message: pb.Done) -> Done:
            if shared is None:
                into(values, 0, values.size)(message.data)
            result._value = tensor.finished(values, out, real)
            return done_of(message)

        self._keep.append(values)
        self._add(take, read=shared if shared is not None else read_request(tensor.ref))
        return result

    def fill(self, tensor: Union[Tensor, str], value: Union[int, float], *, rounding: Optional[str] = None) -> None:
        """As Tensor.fill; of a name the value is taken as it is."""
        form = tensor.format if isinstance(tensor, Tensor) else None
        self._add(fill=fill_request(reference(tensor), value, form, rounding or self._device.rounding))

    def copy(self, destination: Operand, source: Operand) -> None:
        """As Device.copy."""
        self._add(copy=pb.CopyRequest(destination=reference(destination), source=reference(source)))

    def run(self, kernel: str, /, **given: Any) -> None:
        """As Device.run."""
        self._add(run=run_request(kernel, given))

    def _send(self) -> None:
        request = pb.SubmitRequest(operations=self._operations)
        self._pending = self._device.send_raw(self._call, request, lambda response: response, keep=self._keep)

    def result(self) -> tuple[Done, ...]:
        """Waits for the end of a batch of `submit(wait=False)`; what each operation did."""
        if self._pending is None:
            raise ValueError("the batch was not sent")
        if not self.done:
            self._take(self._device.finish(self._pending))
        return self.done

    def _take(self, response: pb.Response) -> None:
        # A dry run answers no data for those that take them.
        self.done = tuple(
            (done_of if done.HasField("costs") else self._takers[done.operation])(done)
            for done in response.submitted.done
        )
        if response.status != pb.OK:
            raise refusal(response, self.done)


class Kept(Batch):
    """A list that the daemon keeps: built and sent once, run by submit() as often as it is asked for.

        with dev.keep() as kept:
            kept.run("relu", in_=x, out=y, relu="gen")
            result = kept.read(y, out=dev.empty(y.shape, y.dtype))
        kept.submit()
        kept.submit({0: {"in": z}})                      # with another tensor, this time

    What a read delivers is overwritten by the next run. A run is refused where a tensor of it, or a right, is gone.
    close() gives the list back; it is gone with its connection, too."""

    _number = 0  # 0: it is not kept

    def _send(self) -> None:
        number = self._device.next_list()
        self._device.ask("keep", pb.KeepRequest(list=number, operations=self._operations))
        self._number = number
        self._pending = None

    def result(self) -> tuple[Done, ...]:
        """What the operations of the latest run did."""
        return self.done

    def submit(self, changes: Optional[Mapping[int, Any]] = None) -> tuple[Done, ...]:
        """Runs it, and waits. `changes`: for operations by their places in the list, from 0 on, another tensor, or an array
        of Device.empty in place of the one that a write or read has, or for a run or copy {role: tensor}."""
        if not self._number:
            raise ValueError("the list is not kept")
        request = pb.SubmitRequest(list=self._number)
        for place, change in (changes or {}).items():
            self._change(request, place, change)
        self._take(
            self._device.finish(
                self._device.send_raw("submit", request, lambda answer: answer, keep=self._keep + [changes])
            )
        )
        return self.done

    def _change(self, request: pb.SubmitRequest, place: int, change: Any) -> None:
        if isinstance(change, Mapping):
            for role, tensor in change.items():
                request.changes.add(operation=place, role=role.rstrip("_"), tensor=reference(tensor).handle)
        elif isinstance(change, np.ndarray):
            part = self._device.memory.find(change)
            if part is None or not is_dense(change):
                raise ValueError("the array of a change is one of Device.empty, whole")
            request.changes.add(operation=place, segment=part.segment, segment_offset=part.offset)
        else:
            request.changes.add(operation=place, tensor=reference(change).handle)

    def close(self) -> None:
        """Gives it back."""
        if self._number:
            self._device.ask("unkeep", pb.UnkeepRequest(list=self._number))
        self._number = 0
