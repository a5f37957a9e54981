"""One case on a private daemon, beside the specification: integers, counters and refusals."""

from __future__ import annotations

import contextlib
import dataclasses
import time
import warnings
from typing import Any, Union

import numpy as np

from .. import address, errors, operations
from ..device import Device
from ..reference.integers import Array
from ..reference.kernels import Result, run
from ..reference.tensor import Format, Refused, Shape, Tensor, shape4
from ..tensor import Tensor as DeviceTensor
from .cases import Case, Given, put
from .draw import Draw

MARGIN = 77  # the value of a view's base beside the view
OUTPUTS = ("out", "cell_out")
SECONDS = 60.0  # after which a request hangs
NPU_MIB = {1: 128, 4: 32, 64: 4}  # of each NPU, by the number of NPUs


class Trial:
    """Private daemons of one instruction set, by their number of NPUs."""

    def __init__(self, isa: str = "") -> None:
        self._options = ("--isa", isa) if isa else ()
        self._devices: dict[int, Device] = {}

    def __enter__(self) -> Trial:
        return self

    def __exit__(self, *_: object) -> None:
        for device in self._devices.values():
            device.close()

    def device(self, n_npus: int) -> Device:
        if n_npus not in self._devices:
            size = f"{NPU_MIB[n_npus]}MiB"
            options = ("--npus", str(n_npus), "--npu-bytes", size, *self._options)
            self._devices[n_npus] = address.spawn(*options, timeout=SECONDS)
        return self._devices[n_npus]

    def difference(self, case: Case, expected: Union[Result, Refused]) -> str:
        """The first difference of the daemon; empty if there is none."""
        try:
            return self._difference(case, expected)
        except (errors.Unavailable, errors.DeadlineExceeded) as problem:
            with contextlib.suppress(errors.Refused, OSError):
                self._devices.pop(case.n_npus).close()
            return f"the daemon ended or hangs: {problem}"

    def _difference(self, case: Case, expected: Union[Result, Refused]) -> str:
        if isinstance(expected, Result):
            return Run(self.device(case.n_npus), case, expected.outputs).difference(expected)
        outputs = {r: Tensor(v.dtype, v.frac_bits, v.shape, np.zeros(v.shape or (1, 1, 1, 1), np.int64))
                   for r, v in case.given.items() if r in OUTPUTS}  # fmt: skip
        return Run(self.device(case.n_npus), case, outputs).refused(expected)


def expectation(case: Case) -> Union[Result, Refused]:
    try:
        return run(case.kernel, **case.given)
    except Refused as refused:
        return refused


def place_outputs(d: Draw, case: Case, result: Result) -> None:
    """Where the outputs lie, whose shapes follow from the inputs."""
    for role, x in result.outputs.items():
        put(d, case, role, x)
    source = case.given.get(case.in_place)
    out = result.out
    same = isinstance(source, Tensor) and (source.dtype, source.f, source.values.shape) == (
        out.dtype, out.f, out.values.shape,
    )  # fmt: skip
    case.in_place = case.in_place if same else ""


class Run:
    def __init__(self, device: Device, case: Case, outputs: dict[str, Tensor]) -> None:
        self.device, self.case, self.outputs = device, case, outputs
        self.bases: list[tuple[DeviceTensor, tuple[slice, ...], str]] = []
        self.owned: list[DeviceTensor] = []

    def _alloc(self, role: str, x: Format, shape: Shape) -> DeviceTensor:
        place, margin = dict(self.case.places.get(role, {})), self.case.margins.get(role)
        if margin:
            whole = tuple(b + e + a for b, e, a in zip(margin[0], shape, margin[1]))
            base = self._new(x, whole, place)
            base.fill(MARGIN)
            key = tuple(slice(b, b + e) for b, e in zip(margin[0], shape))
            self.bases.append((base, key, role))
            return base[key]
        if role in self.case.reshaped:
            return self._new(x, (*shape[:2], 1, shape[2] * shape[3]), place).reshape(shape)
        if place.get("layout") == "matrix":
            return self._new(x, shape[:2], place)
        return self._new(x, shape, place)

    def _new(self, x: Format, shape: tuple[int, ...], place: Given) -> DeviceTensor:
        tensor = self.device.alloc(shape=shape, dtype=x.dtype, frac_bits=x.frac_bits, **place)
        self.owned.append(tensor)
        return tensor

    def _operands(self) -> tuple[Given, list[tuple[DeviceTensor, Array]], dict[str, DeviceTensor]]:
        """The call's arguments, the writes before it, and its outputs."""
        words, writes, outs = dict(self.case.given), [], {}

        def given(role: str, x: Tensor) -> DeviceTensor:
            tensor = self._alloc(role, x, shape4(x.values.shape))
            writes.append((tensor, x.values.reshape(tensor.shape)))
            return tensor

        for word, value in self.case.given.items():
            role = word.rstrip("_")
            if isinstance(value, list):
                words[word] = [given(f"{role}{i}", x) for i, x in enumerate(value)]
            elif role not in OUTPUTS and isinstance(value, Tensor):
                words[word] = given(role, value)
        for role, x in self.outputs.items():
            if self.case.in_place and role == "out":
                outs[role] = words[self.case.in_place]
            else:
                outs[role] = self._alloc(role, x, shape4(x.values.shape))
            words[role] = outs[role]
        return words, writes, outs

    def _run(self) -> tuple[operations.Done, dict[str, Array]]:
        words, writes, outs = self._operands()
        if not self.case.in_list:
            for tensor, values in writes:
                tensor.write(values)
            done = self.device.run(self.case.kernel, **words)
            return done, {role: out.read() for role, out in outs.items()}
        with self.device.submit() as batch:
            for tensor, values in writes:
                batch.write(tensor, values)
            with batch.parallel() if self.case.in_group else contextlib.nullcontext():
                batch.run(self.case.kernel, **words)
            reads = {role: batch.read(out) for role, out in outs.items()}
        return batch.done[len(writes)], {role: read.value for role, read in reads.items()}

    def _guarded(self) -> Union[tuple[operations.Done, dict[str, Array]], errors.Refused, ValueError, TypeError]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return self._run()
            except (errors.Unavailable, errors.DeadlineExceeded):
                raise
            except (errors.Refused, ValueError, TypeError) as problem:
                return problem

    def difference(self, expected: Result) -> str:
        try:
            got = self._guarded()
            if isinstance(got, Exception):
                exhausted = getattr(got, "status", None) == errors.Status.RESOURCE_EXHAUSTED
                too_large = exhausted or "bytes on each NPU; an NPU has" in str(got)
                return "" if too_large else f"refused by the daemon alone: {got}"
            return compared(got[0], got[1], expected) or self._margins()
        finally:
            self._free()

    def refused(self, expected: Refused) -> str:
        try:
            got = self._guarded()
            if not isinstance(got, Exception):
                return f"refused by the specification alone: {expected}"
            status = getattr(got, "status", errors.Status.INVALID)
            return "" if status == errors.Status.INVALID else f"{status.name} instead of INVALID: {got}"
        finally:
            self._free()

    def _margins(self) -> str:
        """A run changes no element around a view."""
        for base, key, role in self.bases:
            values = base.read()
            values[key] = MARGIN
            if (values != MARGIN).any():
                return f"the run changed elements around {role}, which is a view"
        return ""

    def _free(self) -> None:
        if self.owned:
            self.device.free(*self.owned)


def compared(done: operations.Done, got: dict[str, Array], expected: Result) -> str:
    for role, want in expected.outputs.items():
        is_ = got[role].reshape(want.values.shape)
        # NaN is no equal of itself, and -0.0 is one of 0.0: fp32 is compared by its bits.
        same = is_.view(np.uint32) == want.values.view(np.uint32) if want.dtype == "fp32" else is_ == want.values
        if not same.all():
            at = tuple(int(i) for i in np.argwhere(~same)[0])
            return f"{role}{list(at)} is {is_[at]}, {want.values[at]} is expected ({np.count_nonzero(~same)} differ)"
    for name in ("saturated", "wrapped", "divided_by_zero", "macs"):
        is_count, want_count = getattr(done, name), getattr(expected, name)
        if is_count != want_count:
            return f"{name} is {is_count}, {want_count} is expected"
    return ""


def simpler_data(case: Case, fails: Any, seconds: float) -> Case:
    """Elements that do not matter become 0: halves of tensors first, then quarters, …"""
    end = time.monotonic() + seconds
    for word, value in case.given.items():
        if not isinstance(value, Tensor) or word in OUTPUTS:
            continue
        size = value.n
        while size >= 1:
            for first in range(0, value.n, size):
                flat = case.given[word].values.reshape(-1).copy()
                if not flat[first : first + size].any() or time.monotonic() > end:
                    continue
                flat[first : first + size] = 0
                less = dataclasses.replace(value, values=flat.reshape(value.values.shape))
                candidate = dataclasses.replace(case, given={**case.given, word: less})
                if fails(candidate):
                    case = candidate
            size //= 2
    return case


__all__ = ["Trial", "expectation", "place_outputs", "simpler_data"]
