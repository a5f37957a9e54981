"""A connection to a daemon, and so to its device."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Optional, TypeVar, Union

import numpy as np
import numpy.typing as npt

from . import npumem_pb2 as pb
from .batch import Batch, Kept
from .errors import DeadlineExceeded, Refused, refusal
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
    """Bytes of every NPU's local memory. Those of tensors that share memory overlap."""

    offset: int
    n_bytes: int
    tensor: Optional[Tensor]  # None: free


class Device:
    """The device of a daemon, by npumem.connect or npumem.spawn. Requests take effect on a tensor in the order sent. One
    thread at a time; any number of devices.

    timeout  seconds that a call may take before it is taken back with DeadlineExceeded; None: as long as it takes
    info     what the daemon told of itself: version, n_npus, npu_bytes, n_banks, eu_bytes, uid, session, …"""

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
        """Ends the session, and with it its anonymous tensors; a private daemon ends."""
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
        """The device's: convergent, up or nearest."""
        return str(pb.Rounding.Name(self.info.rounding)).lower()

    def ask(self, call: str, message: Any) -> pb.Response:
        """Any request of the protocol, by its member of Request.call; the answer. Refused where it is not OK."""
        return self.finish(self.send(call, message, lambda response: response))

    def ask_tensor(self, call: str, message: Any) -> Tensor:
        return Tensor(self, self.ask(call, message).tensor)

    def send(
        self, call: str, message: Any, convert: Callable[[pb.Response], T], keep: object = None
    ) -> Pending[T]:
        """Any request, without waiting; convert(response) is its result where it is OK."""
        return self.send_raw(call, message, lambda response: convert(answered(response)), keep)

    def send_raw(
        self, call: str, message: Any, convert: Callable[[pb.Response], T], keep: object = None
    ) -> Pending[T]:
        """The same; `convert` sees also what is not OK. `keep` lives until the answer."""
        self.memory.tidy()
        return self._wire.send(call, message, convert, keep=keep)

    def finish(self, pending: Pending[T]) -> T:
        """Waits for as long as `timeout` allows, and else takes the request back."""
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
        """Allocates a tensor, and writes `array` into it where that is given.

        name      empty: anonymous, freed with the session
        array     as Tensor.write takes it; gives the shape, and the dtype where its elements are a container's
        shape …   as npumem.spec
        reuse     never, if-safe, unchecked: whether it may lie over the empty blocks of others
        dma_only  no kernel may write it
        pinned    a compaction does not move it
        wait      seconds to wait if there is no room; DeadlineExceeded after that
        rounding  of floats into fx8 and fx16; None: the device's
        label     of one without a name: what refusals, events and pictures call it; up to 63 printable ASCII characters"""
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
        if values is not None:  # what is wrong with it is to be said before there is a tensor
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
        """All or none of up to 256 named tensors: `dev.alloc_many({"x": npumem.spec((1, 8, 1, 1), "int8")})`."""
        tensors = self._alloc([pb.Allocation(name=name, spec=one) for name, one in specs.items()], wait)
        return dict(zip(specs, tensors))

    def _alloc(self, allocations: list[pb.Allocation], wait: float) -> list[Tensor]:
        request = pb.AllocRequest(tensors=allocations, wait_ms=round(wait * 1000))
        return [Tensor(self, message) for message in self.ask("alloc", request).allocated.tensors]

    def plan(self, wanted: pb.Spec) -> pb.Plan:
        """Where a tensor would lie, without allocating it: `dev.plan(npumem.spec((1, 8, 16, 16), "fx8", 4))`."""
        return self.ask("plan", pb.PlanRequest(spec=wanted)).plan

    def open(self, tensor: Union[str, int]) -> Tensor:
        """A named tensor ("NAME", or "UID:NAME" of another user's), or one by its handle."""
        return self.ask_tensor("open", pb.OpenRequest(tensor=reference(tensor)))

    def tensors(self) -> list[Tensor]:
        """All that one may know of. What comes and goes meanwhile is among them or not."""
        found: list[Tensor] = []
        after = 0
        while True:
            page = self.ask("list", pb.ListRequest(after=after)).list
            found += [Tensor(self, message) for message in page.tensors]
            after = page.next
            if not after:
                return found

    def free(self, *tensors: Operand) -> None:
        """All or none of up to 256; views go with their base."""
        self.ask("free", pb.FreeRequest(tensors=[reference(tensor) for tensor in tensors]))

    def empty(self, shape: tuple[int, ...], dtype: str) -> Array:
        """A zeroed array of a tensor's container type in memory that the daemon maps, too: writing it (or a slice of
        it) to a tensor and reading a tensor into it moves no byte through the socket. It lives as long as any array of
        it, and takes of the session's segment_bytes."""
        return self.memory.empty(tuple(shape), format_of(pb.Spec(dtype=choice(pb.Dtype, dtype))).container)

    # ---- operations ----

    def run(self, kernel: str, /, **given: Any) -> Done:
        """Runs a kernel: its tensors by role and its parameters by name, as print(npumem.kernels["conv2d"]) tells;
        `in` is written `in_`, and any number of them is a list.

            dev.run("conv2d", in_=x, weights=w, bias=b, out=y, stride=(1, 1), padding=(1, 1, 1, 1), relu="gen")"""
        return self.finish(self.run_async(kernel, **given))

    def run_async(self, kernel: str, /, **given: Any) -> Pending[Done]:
        """Does not wait; the Pending's result() does."""
        return self.send("run", run_request(kernel, given), lambda answer: done_of(answer.done))

    def copy(self, destination: Operand, source: Operand) -> Done:
        """Copies a tensor into another of its type, frac_bits and shape; layout, mode and start NPU may differ."""
        return self.finish(self.copy_async(destination, source))

    def copy_async(self, destination: Operand, source: Operand) -> Pending[Done]:
        request = pb.CopyRequest(destination=reference(destination), source=reference(source))
        return self.send("copy", request, lambda answer: done_of(answer.done))

    def submit(self, *, wait: bool = True, dry_run: bool = False) -> Batch:
        """A context manager: what its block adds goes to the daemon as one request. See npumem.Batch. A dry run checks it
        as the run would and runs nothing: `done` has what each operation would cost, and no read has a value. What
        depends on bytes (never written, values that a kernel refuses) only the run checks."""
        return Batch(self, wait, dry_run)

    def keep(self) -> Kept:
        """A context manager: what its block adds is a list that the daemon keeps, to be run by submit(). See npumem.Kept."""
        return Kept(self, False)

    def next_list(self) -> int:
        """An id that no kept list of this connection has had."""
        self._last_list += 1
        return self._last_list

    # ---- the device as a whole ----

    def stat(self, details: bool = False) -> pb.Stat:
        """How the device's bytes are used (data + dummy + padding + empty + free = total); with `details` also what it
        did, and for whom."""
        return self.ask("stat", pb.StatRequest(details=details)).stat

    def map(self) -> list[Region]:
        """What lies where in each NPU's local memory, by offset: tensors (without views), and what is free of them and
        of what others have that one may not know of."""
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
        """Raw bytes of one NPU, up to 1 MiB; those of tensors that one may read."""
        data = self.ask("dump", pb.DumpRequest(npu=npu, offset=offset, bytes=n_bytes)).dump.data
        return np.frombuffer(data, np.uint8)

    def compact(self, dry_run: bool = False) -> pb.Compacted:
        """Moves tensors together, for root and the daemon's uid; a dry run tells what would move."""
        return self.ask("compact", pb.CompactRequest(dry_run=dry_run)).compacted

    def snapshot(self, directory: str) -> int:
        """Copies the daemon's state, as it is at one moment, into a directory that is new or empty, and there only once it is
        whole: npumemd --state-dir DIRECTORY starts from it. Everybody goes on meanwhile. The number of bytes; FileExistsError
        where something is there. For root and the daemon's uid, of a daemon with a state directory."""
        numbers: list[int] = []

        def ask(number: int, end: bool = False) -> pb.SnapshotPiece:
            return self.ask("snapshot", pb.SnapshotRequest(snapshot=number, end=end)).snapshot

        def begin() -> Callable[[], pb.SnapshotPiece]:
            numbers.append(ask(0).snapshot)
            return lambda: ask(numbers[0])

        try:
            return write_snapshot(directory, begin)
        except (OSError, ValueError, KeyboardInterrupt):
            if numbers:  # which the daemon else keeps for as long as this connection lasts
                with contextlib.suppress(Refused):
                    ask(numbers[0], end=True)
            raise

    def shutdown(self) -> None:
        """For root and the daemon's uid: the daemon answers what it was asked, and ends."""
        self.ask("shutdown", pb.ShutdownRequest())
        self._wire.forget()  # who ends a daemon does not look for the next one

    # ---- events ----

    def subscribe(self, *kinds: str) -> None:
        """From now on events of these kinds are kept for events(): allocated, freed, sealed, renamed, moved, damaged,
        refused, low-space, client-gone, progress. None: no more of them."""
        self.ask("subscribe", pb.SubscribeRequest(kinds=kinds))

    def events(self, timeout: Optional[float] = None) -> Iterator[pb.Event]:
        """Events as they come, until none came for `timeout` seconds (None: for ever). The latest 4096 are kept for
        who does not ask; Event.lost tells how many went before."""
        events = self._wire.events
        while True:
            try:
                self._wire.wait(lambda: bool(events), timeout)
            except DeadlineExceeded:
                return
            yield events.popleft()
