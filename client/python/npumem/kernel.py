"""The kernels by name, and the requests that run them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import npumem_pb2 as pb
from ._rows import KERNELS, PARAMS


@dataclass(frozen=True)
class Kernel:
    """A kernel of npumem.kernels.

    roles       its tensors: `>` marks an output, `?` an optional tensor, `*` a list (in0, in1, …)
    parameters  without rounding, which all kernels take
    types       fx8, fx16, fx16w8 (fx16 data with fx8 weights and bias), fp32, int, packed
    """

    name: str
    number: int
    roles: tuple[str, ...]
    parameters: tuple[str, ...]
    types: tuple[str, ...]
    summary: str

    def __str__(self) -> str:
        said = [f"{self.name}: {self.summary}", f"  tensors     {' '.join(self.roles)}"]
        for name in self.parameters:
            said.append(f"  {name:<10}  {PARAMETERS[name]}")
        return "\n".join(said + [f"  types       {' '.join(self.types)}"])


@dataclass(frozen=True)
class Parameter:
    """A parameter: `least` to `most` integers, or names of `choices`."""

    name: str
    number: int
    least: int
    most: int
    choices: tuple[str, ...]

    def __str__(self) -> str:
        if self.choices:
            return "|".join(self.choices)
        return f"{self.least} integers" if self.least > 1 else "an integer"

    def values(self, given: Any) -> list[int]:
        """The values on the wire. For a choice, its place in `choices`, from 1."""
        alone = isinstance(given, (str, int, np.integer))
        items: list[Any] = [given] if alone else list(given)
        if not self.least <= len(items) <= self.most:
            most = f" to {self.most}" if self.most != self.least else ""
            raise ValueError(f"{self.name} takes {self.least}{most} values, not {given!r}")
        return [self._value(item) for item in items]

    def _value(self, item: Any) -> int:
        if self.choices:
            if str(item) not in self.choices:
                raise ValueError(f"{self.name} is one of {', '.join(self.choices)}, not {item!r}")
            return self.choices.index(str(item)) + 1
        if not isinstance(item, (int, np.integer)):
            raise TypeError(f"{self.name} takes integers, not {item!r}")
        return int(item)


kernels: Mapping[str, Kernel] = {
    row[0]: Kernel(row[0], row[1], tuple(row[2].split()), tuple(row[3].split()), tuple(row[4].split()), row[5])
    for row in KERNELS
}
PARAMETERS = {row[0]: Parameter(row[0], row[1], row[2], row[3], tuple(row[4].split())) for row in PARAMS}


def perhaps(word: str, words: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(words), 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def described(value: Any) -> str:
    """For a message: an array without its elements."""
    if isinstance(value, np.ndarray):
        return f"an array ({value.dtype}, {'x'.join(map(str, value.shape))})"
    return f"a {type(value).__name__}"


def reference(tensor: Any) -> pb.Ref:
    """The Ref of a Tensor, a name or a handle."""
    if isinstance(tensor, str):
        return pb.Ref(name=tensor)
    handle = getattr(tensor, "handle", tensor)
    if not isinstance(handle, int):
        raise TypeError(f"{described(tensor)} is not a tensor, name or handle")
    return pb.Ref(handle=handle)


def run_request(kernel: str, given: Mapping[str, Any]) -> pb.RunRequest:
    """The request of a run: tensors by role, parameters by name; `in` also as `in_`, in0, in1, … also as a list."""
    if kernel not in kernels:
        raise ValueError(f"there is no kernel {kernel!r}" + perhaps(kernel, kernels))
    row = kernels[kernel]
    request = pb.RunRequest(kernel=kernel.upper())
    roles = {role.strip(">?*"): role.endswith("*") for role in row.roles}
    for word, value in given.items():
        name = word.rstrip("_")
        if name in row.parameters or name == "rounding":
            parameter = PARAMETERS[name]
            request.params.add(key=parameter.number, values=parameter.values(value))
        elif name in roles and roles[name] and isinstance(value, (list, tuple)):
            for i, tensor in enumerate(value):
                request.operands.add(role=f"{name}{i}", tensor=reference(tensor))
        elif name in roles or roles.get(name.rstrip("0123456789")):
            request.operands.add(role=name, tensor=reference(value))
        else:
            words = [*roles, *row.parameters, "rounding"]
            raise TypeError(f"{kernel} takes {', '.join(words)}, not {word!r}" + perhaps(name, words))
    return request


