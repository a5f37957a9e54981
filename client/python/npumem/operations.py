"""Requests of operations, and their results."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from typing import Any, Callable, Optional, Union

import numpy as np
import numpy.typing as npt

from . import npumem_pb2 as pb
from .errors import DeviceWarning
from .formats import CONTAINERS, Array, contained, dequantize, dtype_name, dtype_number, shape4
from .memory import Memory, request_part

PART_BYTES = 4 << 20  # of an array in one frame; a larger array takes several


@dataclass(frozen=True)
class Destroyed:
    """Tells that a kernel, when it wrote its output, destroyed data of another tensor. Those data lay in an empty block
    of the output's footprint (reuse="unchecked"; THE SAFETY RULE in npumem(7)).

    name, handle          the other tensor
    npu, offset, n_bytes  the first destroyed range
    total_bytes           bytes of data of all ranges"""

    name: str
    handle: int
    npu: int
    offset: int
    n_bytes: int
    total_bytes: int


@dataclass(frozen=True)
class Costs:
    """The costs of an operation in a dry run, computed from shapes and places.

    macs           as Done.macs; taps in the padding do not count
    dma_bytes      bytes that a write, read, fill or copy moves
    read_bytes     bytes of local memory that are read, each operand's elements once
    written_bytes  bytes of local memory that are written
    npus           NPUs that hold elements of the first output, or of the tensor that DMA moves
    lanes          EU lanes that hold elements of the first output; 0 for DMA"""

    macs: int
    dma_bytes: int
    read_bytes: int
    written_bytes: int
    npus: int
    lanes: int


@dataclass(frozen=True)
class Done:
    """The result of an operation.

    saturated, wrapped, divided_by_zero, macs
               the counters of npumem-kernels(7). If saturated and wrapped are 0, no result was out of range
    destroyed  a Destroyed for each other tensor that lost data
    warning    the text of a DeviceWarning; or empty
    seconds    how long it ran
    costs      Costs in a dry run, which has no counters; else None"""

    saturated: int = 0
    wrapped: int = 0
    divided_by_zero: int = 0
    macs: int = 0
    destroyed: tuple[Destroyed, ...] = ()
    warning: str = ""
    seconds: float = 0.0
    costs: Optional[Costs] = None


def warn(text: str) -> None:
    """A DeviceWarning, at the caller's line."""
    frame, level = sys._getframe(), 1
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(__package__):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, DeviceWarning, stacklevel=level)


def costs_of(message: pb.Costs) -> Costs:
    return Costs(
        message.macs,
        message.dma_bytes,
        message.read_bytes,
        message.written_bytes,
        message.npus,
        message.lanes,
    )


def done_of(message: pb.Done) -> Done:
    """Raises a DeviceWarning for the answer's warning, and one for each tensor that lost data."""
    if message.warning:
        warn(message.warning)
    for one in message.destroyed:
        whose = one.name or (f"tensor {one.handle}" if one.handle else "another user's tensor")
        warn(f"destroyed {one.total_bytes} bytes of {whose}, first at NPU {one.npu}, offset {one.offset}")
    return Done(
        message.saturated,
        message.wrapped,
        message.divided_by_zero,
        message.macs,
        tuple(Destroyed(d.name, d.handle, d.npu, d.offset, d.bytes, d.total_bytes) for d in message.destroyed),
        message.warning,
        (message.end_ns - message.start_ns) / 1e9,
        costs_of(message.costs) if message.HasField("costs") else None,
    )


# ---- tensors ----


def dims(values: tuple[int, ...], what: str) -> pb.Dims:
    if len(values) != 4:
        raise ValueError(f"{what} is N,C,H,W, not {list(values)}")
    n, c, h, w = (int(value) for value in values)
    return pb.Dims(n=n, c=c, h=h, w=w)


def choice(enum: Any, value: str, prefix: str = "") -> Any:
    """A name of one of the protocol's enumerations, as its number."""
    name = value.upper().replace("-", "_")
    names = [key for key in enum.keys() if not key.endswith("UNSPECIFIED")]
    for key in (name, prefix + name):
        if key in names:
            return enum.Value(key)
    words = ", ".join(key.removeprefix(prefix).lower().replace("_", "-") for key in names)
    raise ValueError(f"{value!r} is none of {words}")


def spec(
    shape: tuple[int, ...],
    dtype: str,
    frac_bits: Optional[int] = None,
    *,
    layout: str = "aligned",
    mode: str = "plain",
    w: int = 0,
    stride: Optional[tuple[int, int, int, int]] = None,
    start_npu: Optional[int] = None,
    address: Optional[int] = None,
) -> pb.Spec:
    """The type, shape and place of a tensor, for Device.alloc_many and Device.plan.

    shape      (N, C, H, W); with the layout matrix (rows, cols)
    dtype      int8 uint8 int16 uint16 int32 uint32 fp32 fx8 fx16
    frac_bits  required for fx8 and fx16, refused for other types: real = integer / 2**frac_bits
    layout     aligned compact matrix strided
    mode       plain 4n 2n 2ic
    w          for the layout matrix: columns per channel; 0: the width with the least storage
    stride     for the layout strided: (N, C, H, W) in words; 0 for a dimension of one step
    start_npu  the NPU of channel 0; None: that of the address, else 0
    address    of the first element, in bytes; None: the daemon selects one"""
    made = pb.Spec(
        dtype=dtype_number(dtype),  # type: ignore[arg-type]
        layout=choice(pb.Layout, layout),
        mode=choice(pb.Mode, mode, "MODE_"),
        w=w,
    )
    if layout == "matrix":
        if len(shape) != 2:
            raise ValueError(f"a matrix has the shape (rows, cols), not {list(shape)}")
        made.rows, made.cols = (int(n) for n in shape)
    else:
        made.shape.CopyFrom(dims(shape, "a shape"))
    if stride is not None:
        made.stride.CopyFrom(dims(stride, "a stride"))
    for member, value in (("frac_bits", frac_bits), ("start_npu", start_npu), ("address", address)):
        if value is not None:
            setattr(made, member, value)
    return made


@dataclass(frozen=True)
class Format:
    """The shape and type that an array must have for a tensor."""

    shape: tuple[int, ...]  # (N, C, H, W), or (rows, cols)
    dtype: str
    frac_bits: Optional[int]

    @property
    def container(self) -> np.dtype[Any]:
        return CONTAINERS[self.dtype]

    def taken(self, array: npt.ArrayLike, rounding: str) -> Array:
        """The array in the tensor's shape and container. An array that has these is not copied."""
        values = np.asarray(array)
        if values.shape != self.shape and shape4(values.shape) != self.shape:
            raise ValueError(f"an array of shape {list(values.shape)} for a tensor of {list(self.shape)}")
        values, n_saturated = contained(values, self.dtype, self.frac_bits, rounding)
        if n_saturated:
            warn(f"{n_saturated} of {values.size} values were saturated to {self.dtype}, frac_bits {self.frac_bits}")
        return values.reshape(self.shape)

    def given(self, values: Array, real: bool) -> Array:
        if not real or self.dtype == "fp32":
            return values
        return dequantize(values, self.frac_bits or 0) if self.frac_bits is not None else values.astype(np.float32)


def format_of(place: Union[pb.Spec, pb.Place]) -> Format:
    matrix = place.layout == pb.MATRIX
    extents = place.shape
    shape = (place.rows, place.cols) if matrix else (extents.n, extents.c, extents.h, extents.w)
    frac_bits = place.frac_bits if place.HasField("frac_bits") else None
    return Format(shape, dtype_name(place.dtype), frac_bits)


# ---- requests ----


def parts(array: Array) -> list[tuple[int, int]]:
    """Divides an array into ranges [from, to) of elements, one for each frame."""
    step = PART_BYTES // array.itemsize
    return [(at, min(at + step, array.size)) for at in range(0, max(array.size, 1), step)]


def is_dense(array: Array) -> bool:
    return array.flags.c_contiguous


def shared_request(kind: Any, ref: pb.Ref, array: Optional[Array], memory: Memory) -> Any:
    """A WriteRequest or ReadRequest for the array's memory. None: the daemon does not map it."""
    if array is None:
        return None
    part = memory.find(array)
    if part is None or (array.ndim != 4 and not is_dense(array)):
        return None
    request = kind(tensor=ref)
    request_part(request, part, dense=is_dense(array))
    return request


def write_request(ref: pb.Ref, array: Array, first: int, end: int) -> pb.WriteRequest:
    return pb.WriteRequest(tensor=ref, first=first, data=array.reshape(-1)[first:end].tobytes())


def read_request(ref: pb.Ref, first: int = 0, end: int = 0) -> pb.ReadRequest:
    return pb.ReadRequest(tensor=ref, first=first, count=end - first)


def fill_request(ref: pb.Ref, value: Union[int, float], form: Optional[Format], rounding: str) -> pb.FillRequest:
    """A float is quantized for fx8 and fx16."""
    if isinstance(value, (int, np.integer)) and (form is None or form.dtype != "fp32"):
        return pb.FillRequest(tensor=ref, integer=int(value))
    if form is not None and form.dtype != "fp32":
        elements, n_saturated = contained(value, form.dtype, form.frac_bits, rounding)
        if n_saturated:
            warn(f"{value} was saturated to {form.dtype}, frac_bits {form.frac_bits}")
        return pb.FillRequest(tensor=ref, integer=int(elements))
    return pb.FillRequest(tensor=ref, real=float(value))


def into(out: Array, first: int, end: int) -> Callable[[bytes], None]:
    """Returns a function that copies data that were read into elements [first, end) of a dense array."""

    def put(data: bytes) -> None:
        if len(data) != (end - first) * out.itemsize:
            raise ValueError(f"{len(data)} bytes came of {(end - first) * out.itemsize}")
        out.reshape(-1)[first:end] = np.frombuffer(data, out.dtype)

    return put
