"""Every kernel by its name, and a run of one: tensors by role, parameters by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Callable, Optional, Union

import numpy as np

from .._rows import KERNELS as ROWS
from .._rows import PARAMS as PARAM_ROWS
from . import convolutions, dense, elementwise, groups, lookup, packed
from .integers import Counts
from .tensor import Format, Tensor, need, tensor

Kernel = Callable[..., Any]

FAMILIES = (convolutions, dense, elementwise, groups, lookup, packed)
KERNELS: dict[str, Kernel] = {
    row[0]: getattr(module, row[0]) for row in ROWS for module in FAMILIES if hasattr(module, row[0])
}
ROLES = {row[0]: tuple(row[2].split()) for row in ROWS}
PARAMETERS = {row[0]: (*row[3].split(), "rounding") for row in ROWS}
VALUES = {row[0]: (row[2], row[3], tuple(row[4].split())) for row in PARAM_ROWS}  # least, most, choices


@dataclass
class Result:
    """The outputs of a run, by role, and its counters: outputs, out, saturated, wrapped, divided_by_zero, macs."""

    outputs: dict[str, Tensor]
    counts: Counts = field(default_factory=Counts)

    @property
    def out(self) -> Tensor:
        return self.outputs["out"]

    @property
    def saturated(self) -> int:
        return self.counts.saturated

    @property
    def wrapped(self) -> int:
        return self.counts.wrapped

    @property
    def divided_by_zero(self) -> int:
        return self.counts.divided_by_zero

    @property
    def macs(self) -> int:
        return self.counts.macs

    def __repr__(self) -> str:
        lines = []
        for role, x in self.outputs.items():
            f = "" if x.frac_bits is None else f", frac_bits {x.frac_bits}"
            lines.append(f"{role} {x.dtype}{f} {list(x.values.shape)}: {x.values.reshape(-1).tolist()}")
        c = self.counts
        said = f"saturated {c.saturated}, wrapped {c.wrapped}, divided_by_zero {c.divided_by_zero}, macs {c.macs}"
        return "\n".join([*lines, said])


def parameter(name: str, value: Any) -> Any:
    """A parameter's value, checked against its row: a number, a word, or a tuple of them."""
    least, most, choices = VALUES[name]
    alone = isinstance(value, (str, int, np.integer))
    items = [value] if alone else list(value)
    need(least <= len(items) <= most, f"{name} takes {least} to {most} values, not {value!r}")
    for i, item in enumerate(items):
        items[i] = str(item) if choices else int(item)
        need(not choices or items[i] in choices, f"{name} is one of {', '.join(choices)}, not {item!r}")
    return items[0] if most == 1 else tuple(items)


def operand(value: Any, output: bool) -> Union[Tensor, Format]:
    """A tensor of this module, an array, or (with its data, or for an output with its format) one of npumem.Device."""
    if isinstance(value, Tensor if not output else Format):
        return Format(value.dtype, value.frac_bits, value.shape) if output else value
    if hasattr(value, "read") and hasattr(value, "dtype"):
        if output:
            return Format(value.dtype, value.frac_bits, None)
        return tensor(value.read(), value.dtype, value.frac_bits)
    if output:
        raise TypeError(f"an output is a Format or a tensor, not {value!r}")
    return tensor(value)


def run(kernel: str, /, **given: Any) -> Result:
    """Computes a kernel with the arguments of npumem.Device.run: tensors by role, parameters by name, `in` as `in_`,
    inputs in0, in1, … as a list. An output is a Format: element type and frac_bits; its shape follows from the inputs.
    Refused if the device refuses the call. If `rounding` is not given, it is convergent, the default of a device.

        run("relu", in_=fx8([-1, 2], 4), out=Format("fx8", 4), relu="gen").out.values"""
    if kernel not in KERNELS:
        raise ValueError(f"there is no kernel {kernel!r}")
    roles = {role.strip(">?*"): role for role in ROLES[kernel]}
    arguments: dict[str, Any] = {}
    for word, value in given.items():
        name = word.rstrip("_")
        if name in PARAMETERS[kernel]:
            arguments[name] = parameter(name, value)
        elif name in roles and roles[name].endswith("*"):
            arguments[name] = [operand(one, False) for one in (value if isinstance(value, (list, tuple)) else [value])]
        elif name in roles:
            arguments[name] = operand(value, roles[name].startswith(">"))
        else:
            raise TypeError(f"{kernel} takes {', '.join([*roles, *PARAMETERS[kernel]])}, not {word!r}")
    for name, role in roles.items():
        need(name in arguments or "?" in role, f"{kernel}: role {name} is missing")
    if not kernel.startswith("packed_"):
        arguments.setdefault("rounding", "convergent")
    return called(kernel, roles, arguments)


def called(kernel: str, roles: Mapping[str, str], arguments: dict[str, Any]) -> Result:
    counts = Counts()
    arguments.setdefault("rounding", None)
    words = {"in_" if name == "in" else name: value for name, value in arguments.items()}
    try:
        outputs = KERNELS[kernel](**words, counts=counts)
    except TypeError as problem:
        missing = [name for name in ("act", "kernel", "perm", "value") if f"'{name}'" in str(problem)]
        need(not missing, f"{kernel}: parameter {', '.join(missing)} is missing")
        raise
    names = [name for name, role in roles.items() if role.startswith(">")]
    return Result(dict(zip(names, outputs if isinstance(outputs, tuple) else [outputs])), counts)


def described(kernel: str) -> str:
    """The text about a kernel: its formula, tensors, parameters, refusals, counters, source and an example."""
    text: Optional[str] = KERNELS[kernel].__doc__
    return text or ""
