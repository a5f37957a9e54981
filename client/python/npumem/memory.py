"""System memory that the daemon maps, too: NumPy arrays in a sealed memfd, of which no byte crosses the socket."""

from __future__ import annotations

import fcntl
import mmap
import os
import weakref
from typing import Any, NamedTuple, Optional

import numpy as np

from . import npumem_pb2 as pb
from .formats import Array
from .wire import Wire, answered


class Part(NamedTuple):
    """Where an array lies in a segment."""

    segment: int
    offset: int  # bytes
    stride: tuple[int, ...]  # elements


class _Segment(NamedTuple):
    number: int
    address: int
    n_bytes: int


class Memory:
    """The segments of a connection. Each lives as long as an array in it."""

    def __init__(self, wire: Wire, shared: bool = True) -> None:
        self._wire = wire
        self._shared = shared  # False: arrays are in this process only, and are sent
        self._segments: dict[int, _Segment] = {}
        self._unused: list[int] = []  # removed with the next call, as a finalizer may run at any time

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """A zeroed array in a segment of its own."""
        self.tidy()
        n_bytes = int(np.prod(shape, dtype=object)) * np.dtype(dtype).itemsize
        if n_bytes <= 0:
            raise ValueError(f"an array of shape {list(shape)} has no bytes")
        if not self._shared:
            return np.zeros(shape, dtype)
        fd = os.memfd_create("npumem", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.posix_fallocate(fd, 0, n_bytes)  # a daemon may refuse memory with holes
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
            mapped = mmap.mmap(fd, n_bytes)
            pending = self._wire.send("share", pb.ShareRequest(), answered, fds=[fd])
        finally:
            os.close(fd)
        number = pending.result(self._wire.timeout).shared.segment
        array = np.frombuffer(mapped, dtype).reshape(shape)
        self._segments[number] = _Segment(number, address(array), n_bytes)
        weakref.finalize(mapped, self._unused.append, number)
        return array

    def tidy(self) -> None:
        """Removes segments without arrays from the daemon."""
        while self._unused:
            number = self._unused.pop()
            del self._segments[number]
            self._wire.send("unshare", pb.UnshareRequest(segment=number), lambda response: None)

    def find(self, array: Array) -> Optional[Part]:
        """The place of an array in a segment. None: it is in no segment, or its strides are not for DMA."""
        if not array.size or any(step < 0 or step % array.itemsize for step in array.strides):
            return None
        first = address(array)
        bytes_spanned = sum((n - 1) * step for n, step in zip(array.shape, array.strides)) + array.itemsize
        if any(n > 1 and step == 0 for n, step in zip(array.shape, array.strides)):
            return None  # a stride of 0 repeats an element
        for segment in self._segments.values():
            if segment.address <= first and first + bytes_spanned <= segment.address + segment.n_bytes:
                stride = tuple(step // array.itemsize for step in array.strides)
                return Part(segment.number, first - segment.address, stride)
        return None


def address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def request_part(request: Any, part: Part, dense: bool) -> None:
    """Sets the segment of a WriteRequest or ReadRequest."""
    request.segment, request.segment_offset = part.segment, part.offset
    if not dense:
        n, c, h, w = part.stride
        request.segment_stride.CopyFrom(pb.Dims(n=n, c=c, h=h, w=w))
