"""A connection to a daemon and its device."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Optional, TypeVar, Union

import numpy as np
import numpy.typing as npt

from . import npumem_pb2 as pb
from .batch import Batch, Kept
from .errors import DeadlineExceeded, Refused, Status, Unavailable, refusal
from .formats import Array, contained, dtype_of, shape4
from .kernel import reference, run_request
from .memory import Memory
from .operations import Done, choice, done_of, format_of, spec
from .snapshot import write_snapshot
from .tensor import Tensor
from .wire import Pending, Wire, answered

T = TypeVar("T")
Operand = Union[Tensor, str, int]  # a tensor, a name ("UID:NAME" of another user's), a handle


class Region(NamedTuple):
    """A byte range, the same in the local memory of every NPU: offset, n_bytes, and tensor. tensor is None if the range
    has no tensor that you may know of. Regions of tensors that share memory overlap."""

    offset: int
    n_bytes: int
    tensor: Optional[Tensor]


class Device:
    """A connection to a daemon and its device, from npumem.connect or npumem.spawn. Requests take effect on a tensor in
    the order sent. One thread at a time may use a Device; a process may have any number of them.

    timeout  seconds that a call may take; then it is cancelled and raises DeadlineExceeded. None: no limit
    info     facts of the daemon: version, n_npus, npu_bytes, n_banks, eu_bytes, uid, session, …"""

    def __init__(self, wire: Wire, timeout: Optional[float] = None, shared: bool = True) -> None:
        self._wire = wire
        self.memory = Memory(wire, shared)
        self.timeout = timeout
        self._last_list = 0
        self.info: pb.Info = self.ask("info", pb.InfoRequest()).info

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<npumem device, {self.info.n_npus} NPUs x {self.info.npu_bytes} bytes>"

    def close(self) -> None:
        """Ends the session. The daemon frees its tensors without names. A private daemon ends."""
        self._wire.close()

    # ---- requests ----

    @property
    def timeout(self) -> Optional[float]:
        return self._wire.timeout

    @timeout.setter
    def timeout(self, seconds: Optional[float]) -> None:
        self._wire.timeout = seconds

    @property
    def rounding(self) -> str:
        """The device's rounding: convergent, up or nearest."""
        return str(pb.Rounding.Name(self.info.rounding)).lower()

    def ask(self, call: str, message: Any) -> pb.Response:
        """Sends any request of the protocol and returns the answer. `call` is a member of Request.call, `message` its
        message. Refused if the status is not OK."""
        return self.finish(self.send(call, message, lambda response: response))

    def ask_tensor(self, call: str, message: Any) -> Tensor:
        return Tensor(self, self.ask(call, message).tensor)

    def send(
        self, call: str, message: Any, convert: Callable[[pb.Response], T], keep: object = None
    ) -> Pending[T]:
        """As ask, but does not wait. The Pending's result is convert(response) if the status is OK."""
        return self.send_raw(call, message, lambda response: convert(answered(response)), keep)

    def send_raw(
        self, call: str, message: Any, convert: Callable[[pb.Response], T], keep: object = None
    ) -> Pending[T]:
        """As send, but `convert` gets responses of every status. `keep` is an object that lives until the answer."""
        self.memory.tidy()
        return self._wire.send(call, message, convert, keep=keep)

    def finish(self, pending: Pending[T]) -> T:
        """Waits for a request for at most Device.timeout seconds, and then cancels it."""
        try:
            return pending.result(self.timeout)
        except BaseException:
            if not pending.done():
                pending.cancel()
            raise

    # ---- tensors ----

    def alloc(
        self,
        name: str = "",
        array: Optional[npt.ArrayLike] = None,
        *,
        shape: Optional[tuple[int, ...]] = None,
        dtype: Optional[str] = None,
        frac_bits: Optional[int] = None,
        layout: str = "aligned",
        mode: str = "plain",
        w: int = 0,
        stride: Optional[tuple[int, int, int, int]] = None,
        start_npu: Optional[int] = None,
        address: Optional[int] = None,
        reuse: str = "never",
        dma_only: bool = False,
        pinned: bool = False,
        wait: float = 0.0,
        rounding: Optional[str] = None,
        label: str = "",
    ) -> Tensor:
        """Allocates a tensor, and writes `array` into it if one is given.

        name      empty: the tensor has no name, and is freed with the session
        array     as for Tensor.write. If shape is not given, the array's applies; if dtype is not given, the integer
                  type or fp32 of the array's elements
        shape …   as for npumem.spec
        reuse     never, if-safe, unchecked: whether the tensor may lie in empty blocks of other tensors
        dma_only  True: no kernel may write the tensor
        pinned    True: a compaction does not move it
        wait      seconds to wait if there is no room; then DeadlineExceeded
        rounding  of floats into fx8 and fx16; None: the device's
        label     for a tensor without a name: a text for refusals, events and pictures, up to 63 printable ASCII
                  characters"""
        values = None if array is None else np.asarray(array)
        if values is None and (shape is None or dtype is None):
            raise TypeError("alloc takes an array, or shape and dtype")
        if shape is None:
            assert values is not None
            shape = values.shape if layout == "matrix" else shape4(values.shape)
        if dtype is None:
            assert values is not None
            dtype = dtype_of(values)
        wanted = spec(
            shape, dtype, frac_bits, layout=layout, mode=mode, w=w, stride=stride, start_npu=start_npu, address=address
        )
        if values is not None:  # a wrong array is refused before the allocation
            values = format_of(wanted).taken(values, rounding or self.rounding)
        message = pb.Allocation(
            name=name, spec=wanted, reuse=choice(pb.Reuse, reuse), dma_only=dma_only, pinned=pinned, label=label
        )
        tensor = self._alloc([message], wait)[0]
        if values is not None:
            try:
                tensor.write(values)
            except BaseException:
                tensor.free()
                raise
        return tensor

    def alloc_many(self, specs: Mapping[str, pb.Spec], *, wait: float = 0.0) -> dict[str, Tensor]:
        """Allocates all of up to 256 named tensors, or none:
        `dev.alloc_many({"x": npumem.spec((1, 8, 1, 1), "int8")})`."""
        tensors = self._alloc([pb.Allocation(name=name, spec=one) for name, one in specs.items()], wait)
        return dict(zip(specs, tensors))

    def _alloc(self, allocations: list[pb.Allocation], wait: float) -> list[Tensor]:
        request = pb.AllocRequest(tensors=allocations, wait_ms=round(wait * 1000))
        allocated = self.ask("alloc", request).allocated.tensors
        if len(allocated) != len(allocations):
            reason = f"the daemon answered with {len(allocated)} tensors to an allocation of {len(allocations)}"
            raise Unavailable(Status.UNAVAILABLE, reason)
        return [Tensor(self, message) for message in allocated]

    def plan(self, wanted: pb.Spec) -> pb.Plan:
        """Computes the place of a tensor without allocating it: `dev.plan(npumem.spec((1, 8, 16, 16), "fx8", 4))`."""
        return self.ask("plan", pb.PlanRequest(spec=wanted)).plan

    def open(self, tensor: Union[str, int]) -> Tensor:
        """Finds a tensor by its name ("NAME", or "UID:NAME" for a tensor of another user) or by its handle."""
        return self.ask_tensor("open", pb.OpenRequest(tensor=reference(tensor)))

    def tensors(self) -> list[Tensor]:
        """All tensors that you may know of. A tensor that is allocated or freed during the call may or may not be in
        the list."""
        found: list[Tensor] = []
        after = 0
        while True:
            page = self.ask("list", pb.ListRequest(after=after)).list
            found += [Tensor(self, message) for message in page.tensors]
            after = page.next
            if not after:
                return found

    def free(self, *tensors: Operand) -> None:
        """Frees all of up to 256 tensors, or none. Views are freed with their base."""
        self.ask("free", pb.FreeRequest(tensors=[reference(tensor) for tensor in tensors]))

    def empty(self, shape: tuple[int, ...], dtype: str) -> Array:
        """A zeroed array of a tensor's container type in memory that the daemon maps, too. If it, or a slice of it, is
        written to a tensor or read from one, no byte of data crosses the socket. The memory lives as long as any array
        in it, and counts against your segment_bytes."""
        return self.memory.empty(tuple(shape), format_of(pb.Spec(dtype=choice(pb.Dtype, dtype))).container)

    # ---- operations ----

    def run(self, kernel: str, /, **given: Any) -> Done:
        """Runs a kernel. Arguments are tensors by role and parameters by name; print(npumem.kernels["conv2d"]) lists
        them. `in` is written `in_`; inputs in0, in1, … are a list.

            dev.run("conv2d", in_=x, weights=w, bias=b, out=y, stride=(1, 1), padding=(1, 1, 1, 1), relu="gen")"""
        return self.finish(self.run_async(kernel, **given))

    def run_async(self, kernel: str, /, **given: Any) -> Pending[Done]:
        """As run, but does not wait; the Pending's result() does."""
        return self.send("run", run_request(kernel, given), lambda answer: done_of(answer.done))

    def copy(self, destination: Operand, source: Operand) -> Done:
        """Copies a tensor into another of its type, frac_bits and shape; layout, mode and start NPU may differ."""
        return self.finish(self.copy_async(destination, source))

    def copy_async(self, destination: Operand, source: Operand) -> Pending[Done]:
        """As copy, but does not wait."""
        request = pb.CopyRequest(destination=reference(destination), source=reference(source))
        return self.send("copy", request, lambda answer: done_of(answer.done))

    def submit(self, *, wait: bool = True, dry_run: bool = False) -> Batch:
        """A context manager: the operations that its block adds go to the daemon as one request. See npumem.Batch. A
        dry run makes the checks of the run and runs nothing: `done` has the costs of each operation, and reads have no
        value. Checks that depend on bytes (never written, values that a kernel refuses) are made by the run only."""
        return Batch(self, wait, dry_run)

    def keep(self) -> Kept:
        """A context manager: the operations that its block adds become a list that the daemon keeps, and that submit()
        runs. See npumem.Kept."""
        return Kept(self, False)

    def next_list(self) -> int:
        """A new id for a kept list of this connection."""
        self._last_list += 1
        return self._last_list

    # ---- the device as a whole ----

    def stat(self, details: bool = False) -> pb.Stat:
        """The use of the device's bytes (data + dummy + padding + empty + free = total); with `details` also counts of
        requests and operations, by user and session."""
        return self.ask("stat", pb.StatRequest(details=details)).stat

    def map(self) -> list[Region]:
        """The regions of the NPUs' local memory, in the order of their offsets: a region for each tensor that you may
        know of, without views, and a region without a tensor for each gap between these. The bytes of a gap are free,
        or belong to tensors of other users that you may not know of."""
        regions = [
            Region(tensor.place.offset, tensor.place.bytes_per_npu, tensor)
            for tensor in self.tensors()
            if not tensor.message.base_handle
        ]
        regions.sort(key=lambda region: region[:2])
        end, free = 0, []
        for region in regions + [Region(self.info.npu_bytes, 0, None)]:
            if region.offset > end:
                free.append(Region(end, region.offset - end, None))
            end = max(end, region.offset + region.n_bytes)
        return sorted(regions + free, key=lambda region: region[:2])

    def dump(self, npu: int, offset: int, n_bytes: int) -> npt.NDArray[np.uint8]:
        """Raw bytes of one NPU, up to 1 MiB. Refused (PERMISSION_DENIED) if a tensor that you may not read has bytes
        there."""
        data = self.ask("dump", pb.DumpRequest(npu=npu, offset=offset, bytes=n_bytes)).dump.data
        return np.frombuffer(data, np.uint8)

    def compact(self, dry_run: bool = False) -> pb.Compacted:
        """Moves tensors together, for root and the daemon's uid. A dry run moves nothing and returns the moves."""
        return self.ask("compact", pb.CompactRequest(dry_run=dry_run)).compacted

    def snapshot(self, directory: str) -> int:
        """Copies the daemon's state at one moment into a new or empty directory, and returns the number of bytes. The
        directory's files appear only when the copy is complete; meanwhile all clients continue. npumemd --state-dir
        DIRECTORY starts from the copy. FileExistsError if the directory is not empty. For root and the daemon's uid;
        the daemon must have a state directory."""
        numbers: list[int] = []

        def ask(number: int, end: bool = False) -> pb.SnapshotPiece:
            return self.ask("snapshot", pb.SnapshotRequest(snapshot=number, end=end)).snapshot

        def begin() -> Callable[[], pb.SnapshotPiece]:
            numbers.append(ask(0).snapshot)
            return lambda: ask(numbers[0])

        try:
            return write_snapshot(directory, begin)
        except (OSError, ValueError, KeyboardInterrupt):
            if numbers:  # else the daemon keeps the snapshot until this connection ends
                with contextlib.suppress(Refused):
                    ask(numbers[0], end=True)
            raise

    def shutdown(self) -> None:
        """Ends the daemon, after it has answered the requests that it has. For root and the daemon's uid."""
        self.ask("shutdown", pb.ShutdownRequest())
        self._wire.forget()  # no reconnecting to the next daemon

    # ---- events ----

    def subscribe(self, *kinds: str) -> None:
        """Selects the kinds of events that events() returns from now on: allocated, freed, sealed, renamed, moved,
        damaged, refused, low-space, client-gone, progress. Without a kind the subscription ends."""
        self.ask("subscribe", pb.SubscribeRequest(kinds=kinds))

    def events(self, timeout: Optional[float] = None) -> Iterator[pb.Event]:
        """Yields events as they come, and ends after `timeout` seconds without one (None: never). The latest 4096
        unread events are kept; Event.lost is the number of events before this one that were lost."""
        events = self._wire.events
        while True:
            try:
                self._wire.wait(lambda: bool(events), timeout)
            except DeadlineExceeded:
                return
            yield events.popleft()
