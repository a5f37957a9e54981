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
    """A read of a batch, whose array comes when the batch has run."""

    def __init__(self) -> None:
        self._value: Optional[Array] = None

    @property
    def value(self) -> Array:
        """The array. ValueError before the batch has run this read."""
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

    If an operation names a tensor that does not exist, none of them runs. If an operation is refused when its turn
    comes, the list ends there: the operations before it have run, and Refused.done has their results. A batch has at
    most 1024 operations, 16 MiB of written data and 12288 fields; the data of its reads must fit 16 MiB, too. Arrays of
    Device.empty do not count. If the block raises an exception, nothing is sent."""

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
        self.done: tuple[Done, ...] = ()  # the results of the operations, after the run

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
        """The operations of this block, at most 256, are a parallel group: its DMA and its kernels run at once. If a
        DMA operation writes bytes that a kernel uses, or the other way round, the whole group is refused (ABORTED)."""
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
        """Labels the operations of this block in refusals, events and stat: at most 63 printable ASCII characters."""
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
        """As Tensor.fill. If the tensor is given by its name, the value is not quantized."""
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
        """Waits for the end of a batch of `submit(wait=False)`. Returns what each operation did."""
        if self._pending is None:
            raise ValueError("the batch was not sent")
        if not self.done:
            self._take(self._device.finish(self._pending))
        return self.done

    def _take(self, response: pb.Response) -> None:
        # The answer of a dry run has no data for reads.
        self.done = tuple(
            (done_of if done.HasField("costs") else self._takers[done.operation])(done)
            for done in response.submitted.done
        )
        if response.status != pb.OK:
            raise refusal(response, self.done)


class Kept(Batch):
    """A list of operations that the daemon keeps: built and sent once, run by each submit().

        with dev.keep() as kept:
            kept.run("relu", in_=x, out=y, relu="gen")
            result = kept.read(y, out=dev.empty(y.shape, y.dtype))
        kept.submit()
        kept.submit({0: {"in": z}})                      # with another tensor, this time

    The array of a read is overwritten by the next run. submit() raises Refused if a tensor of the list was freed, or if
    you lost the right to one; then no operation has run. close() removes the list from the daemon; so does the end of
    the session."""

    _number = 0  # the list's id; 0: the daemon does not keep it

    def _send(self) -> None:
        number = self._device.next_list()
        self._device.ask("keep", pb.KeepRequest(list=number, operations=self._operations))
        self._number = number
        self._pending = None

    def result(self) -> tuple[Done, ...]:
        """What the operations did in the latest run."""
        return self.done

    def submit(self, changes: Optional[Mapping[int, Any]] = None) -> tuple[Done, ...]:
        """Runs the list and waits. `changes` are for this run only. Their keys are indices of operations, from 0. A
        value is another tensor; for a write or read with an array of Device.empty also another such array; for a run or
        copy {role: tensor}."""
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
        """Removes the list from the daemon."""
        if self._number:
            self._device.ask("unkeep", pb.UnkeepRequest(list=self._number))
        self._number = 0
