"""A tensor on the device."""

from __future__ import annotations

import pwd
from typing import TYPE_CHECKING, Any, Callable, Optional, Union

import numpy as np
import numpy.typing as npt

from . import npumem_pb2 as pb
from .formats import Array
from .operations import (
    Done,
    choice,
    dims,
    done_of,
    fill_request,
    format_of,
    into,
    is_dense,
    parts,
    read_request,
    shared_request,
    write_request,
)
from .wire import Pending, Several

if TYPE_CHECKING:
    from .device import Device

Slices = Union[slice, tuple[slice, ...]]


class Tensor:
    """A tensor on the device, from Device.alloc, Device.open or a view. A tensor without a name is freed at the end of
    the session; one with a name stays until it is freed. Used as a context manager, it is freed at the end of the
    block."""

    def __init__(self, device: Device, message: pb.Tensor) -> None:
        self._device = device
        self.message = message  # as in the daemon's latest answer
        self.format = format_of(message.place)

    @property
    def handle(self) -> int:
        return int(self.message.handle)

    @property
    def name(self) -> str:
        """Its name; empty: it has none."""
        return str(self.message.name)

    @property
    def label(self) -> str:
        """The label of a tensor without a name; or empty."""
        return str(self.message.label)

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, C, H, W); for a matrix (rows, cols)."""
        return self.format.shape

    @property
    def dtype(self) -> str:
        return self.format.dtype

    @property
    def frac_bits(self) -> Optional[int]:
        """For fx8 and fx16 the frac_bits; else None."""
        return self.format.frac_bits

    @property
    def place(self) -> pb.Place:
        """Where it lies: layout, mode, stride, start_npu, address, bytes_per_npu, blocks (bytes)."""
        return self.message.place

    @property
    def ref(self) -> pb.Ref:
        return pb.Ref(handle=self.handle)

    def __repr__(self) -> str:
        frac = f", frac_bits {self.frac_bits}" if self.frac_bits is not None else ""
        return f"<{self.name or self.label or 'anonymous'} {self.dtype}{frac} {list(self.shape)}>"

    def __enter__(self) -> Tensor:
        return self

    def __exit__(self, *_: object) -> None:
        self.free()

    # ---- data ----

    def write(self, array: npt.ArrayLike, *, rounding: Optional[str] = None) -> Done:
        """Writes an array of the tensor's shape, or of fewer dimensions: (C,) is [1,C,1,1], (K, M) is [K,M,1,1], (C, H,
        W) is [1,C,H,W]. For fx8 and fx16, floats are quantized, with `rounding` or else the device's rounding. Integers
        are the container's, and must be in its range. An array of Device.empty is not copied."""
        return self._device.finish(self.write_async(array, rounding=rounding))

    def write_async(self, array: npt.ArrayLike, *, rounding: Optional[str] = None) -> Pending[Done]:
        """As write, but does not wait. An array of Device.empty must not change until the answer."""
        values = self.format.taken(array, rounding or self._device.rounding)
        shared = shared_request(pb.WriteRequest, self.ref, values, self._device.memory)
        if shared is not None:
            return self._device.send("write", shared, lambda answer: done_of(answer.done), keep=values)
        sent = [
            self._device.send("write", write_request(self.ref, values, *part), lambda answer: done_of(answer.done))
            for part in parts(values)
        ]
        return Several(sent, lambda done: done[-1])

    def read(self, out: Optional[Array] = None, *, real: bool = False) -> Array:
        """Returns the elements as an array of the tensor's shape: the container's integers (fp32: floats), or with
        `real` the numbers that they stand for, as float32. `out` is an array to read into, of the tensor's shape and
        container type; into an array of Device.empty, data are read without a copy. DeviceWarning if data are damaged
        or were never written, and the daemon does not refuse the read."""
        return self._device.finish(self.read_async(out, real=real))

    def read_async(self, out: Optional[Array] = None, *, real: bool = False) -> Pending[Array]:
        """As read, but does not wait. The content of `out` before the answer is undefined."""
        if out is not None:
            self.check_out(out)
        shared = shared_request(pb.ReadRequest, self.ref, out, self._device.memory)
        if shared is not None:
            return self._device.send("read", shared, self._read_shared(out, real), keep=out)
        values: Array = out if out is not None and is_dense(out) else np.empty(self.shape, self.format.container)
        sent = [
            self._device.send("read", read_request(self.ref, *part), self._read_part(into(values, *part)))
            for part in parts(values)
        ]
        return Several(sent, lambda _: self.finished(values, out, real))

    def check_out(self, out: Array) -> None:
        if out.shape != self.shape or out.dtype != self.format.container or not out.flags.writeable:
            raise ValueError(
                f"reading {self!r} takes a writeable array of {self.format.container} {list(self.shape)}, "
                f"not of {out.dtype} {list(out.shape)}"
            )

    def finished(self, values: Array, out: Optional[Array], real: bool) -> Array:
        if out is not None and out is not values:
            out[...] = values
            values = out
        return self.format.given(values, real)

    def _read_shared(self, out: Any, real: bool) -> Callable[[pb.Response], Array]:
        def convert(answer: pb.Response) -> Array:
            done_of(answer.done)
            return self.format.given(out, real)

        return convert

    @staticmethod
    def _read_part(put: Callable[[bytes], None]) -> Callable[[pb.Response], Done]:
        def convert(answer: pb.Response) -> Done:
            put(answer.done.data)
            return done_of(answer.done)

        return convert

    def fill(self, value: Union[int, float], *, rounding: Optional[str] = None) -> Done:
        """Sets every element. An integer is the container's; a float is quantized for fx8 and fx16."""
        return self._device.finish(self.fill_async(value, rounding=rounding))

    def fill_async(self, value: Union[int, float], *, rounding: Optional[str] = None) -> Pending[Done]:
        """As fill, but does not wait."""
        request = fill_request(self.ref, value, self.format, rounding or self._device.rounding)
        return self._device.send("fill", request, lambda answer: done_of(answer.done))

    def copy_from(self, source: Union[Tensor, str, int]) -> Done:
        """Copies a tensor of the same type, frac_bits and shape, which may lie in another layout."""
        return self._device.copy(self, source)

    # ---- views ----

    def __getitem__(self, key: Slices) -> Tensor:
        """An anonymous view of a slice: x[0:1, 8:16]. It shares the tensor's memory."""
        return self.view(key)

    def view(self, key: Slices, name: str = "") -> Tensor:
        """A view of a slice over N, C, H, W: x.view(numpy.s_[:, 8:16], "tail"). x[:, 8:16] is the same view without a
        name. Steps are 1; a dimension that is not given is whole. A view shares the tensor's memory, and is freed with
        its base, or before by free()."""
        slices = key if isinstance(key, tuple) else (key,)
        if len(slices) > 4 or len(self.shape) != 4 or not all(isinstance(one, slice) for one in slices):
            raise TypeError("a view takes up to four slices, of N, C, H and W")
        whole = (*slices, *[slice(None)] * (4 - len(slices)))
        ends = [one.indices(extent) for one, extent in zip(whole, self.shape)]
        if any(step != 1 for _, _, step in ends):
            raise ValueError("a view's slices have steps of 1")
        start, stop = tuple(end[0] for end in ends), tuple(end[1] for end in ends)
        request = pb.ViewRequest(name=name, tensor=self.ref)
        request.__getattribute__("from").CopyFrom(dims(start, "a start"))
        request.to.CopyFrom(dims(stop, "an end"))
        return self._device.ask_tensor("view", request)

    def reshape(self, shape: tuple[int, int, int, int], name: str = "") -> Tensor:
        """A view of all bytes of the tensor in another shape (N, C, H, W) with the same C."""
        request = pb.ViewRequest(name=name, tensor=self.ref, shape=dims(shape, "a shape"))
        return self._device.ask_tensor("view", request)

    def with_frac_bits(self, frac_bits: int, name: str = "") -> Tensor:
        """A view of all elements with other frac_bits: an element that is x here is x * 2**(self.frac_bits - frac_bits)
        in the view."""
        return self._device.ask_tensor("view", pb.ViewRequest(name=name, tensor=self.ref, frac_bits=frac_bits))

    # ---- the tensor as a whole ----

    def show(self) -> pb.Tensor:
        """Asks the daemon for all about the tensor: state, unwritten_bytes, sealed, grants, …"""
        self.message = self._device.ask("open", pb.OpenRequest(tensor=self.ref)).tensor
        return self.message

    @property
    def state(self) -> str:
        """Asks the daemon for the state: ok, unwritten, partly written, damaged or lost."""
        return str(self.show().state)

    def seal(self) -> None:
        """Makes the tensor read-only until it is freed."""
        self.message = self._device.ask("seal", pb.SealRequest(tensor=self.ref)).tensor

    def rename(self, name: str) -> None:
        """Gives a named tensor another name. Refused (ALREADY_EXISTS) if its owner has a tensor of that name."""
        self.message = self._device.ask("rename", pb.RenameRequest(tensor=self.ref, name=name)).tensor

    def grant(self, user: Union[int, str], access: str) -> None:
        """Sets the access of another user (a uid, or a user name of this machine) to a named tensor: "read", "write" or
        "none"."""
        uid = pwd.getpwnam(user).pw_uid if isinstance(user, str) else user
        request = pb.GrantRequest(tensor=self.ref, uid=uid, access=choice(pb.Access, access, "ACCESS_"))
        self.message = self._device.ask("grant", request).tensor

    def free(self) -> None:
        """Frees the tensor and its views."""
        self._device.free(self)


