"""The network that is written: tensors, operations and arrays, as network.json of npumemctl has them.

Invariant: a name stands for one tensor; a Held that is not dense (a slice) is never given another shape as a view."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Optional, Union

import numpy as np

from .formats import BITS, FRAC_BITS_MAX, integers
from .model import Array, ImportRefused, Shape

Given = Union["Held", list["Held"], int, str, Sequence[int], Sequence[str]]


@dataclass(frozen=True)
class Held:
    """Elements on the device: a tensor, or a view of one, in (N, C, H, W). `dense`: without gaps, so that a view in
    another shape exists."""

    name: str
    shape: Shape
    dtype: str
    frac: int
    dense: bool = True


def plain(name: str) -> str:
    """A name that a file and a tensor may have."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name).lstrip(".-")[:100] or "_"


class Network:
    """What an import builds up. `arrays` has the contents of files by their names."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tensors: dict[str, dict[str, Any]] = {}
        self.operations: list[dict[str, Any]] = []
        self.arrays: dict[str, Array] = {}
        self.taken: set[str] = set()
        self.kept: dict[tuple[Any, ...], Held] = {}
        self.near = "value"  # names of tensors begin with this
        self.label = ""  # of the operations that are added

    def fresh(self, near: str) -> str:
        name, n = plain(near), 1
        while name in self.taken:
            n += 1
            name = f"{plain(near)}.{n}"
        self.taken.add(name)
        return name

    # ---- tensors ----

    def declare(self, near: str, shape: Sequence[int], dtype: str, frac: int, **more: Any) -> Held:
        if not 0 <= frac <= FRAC_BITS_MAX:
            raise ImportRefused(f"a value would need {frac} frac_bits, and 0 to {FRAC_BITS_MAX} exist")
        name, extents = self.fresh(near), [int(extent) for extent in shape]
        self.tensors[name] = {"shape": extents, "dtype": dtype, **({"frac_bits": frac} if dtype in BITS else {})}
        if extents[1] == 1 or extents[2] == extents[3] == 1:  # no gaps between elements
            self.tensors[name]["layout"] = "compact"
        self.tensors[name].update(more)
        return Held(name, tuple(extents), dtype, frac)

    def tensor(self, shape: Sequence[int], dtype: str, frac: int) -> Held:
        return self.declare(self.near, shape, dtype, frac)

    def constant(self, values: Array, shape: Sequence[int], dtype: str, frac: int, near: str = "") -> Held:
        """A tensor that holds these real numbers. The same numbers in the same format are one tensor."""
        frac = min(frac, FRAC_BITS_MAX)
        array = np.ascontiguousarray(integers(values, dtype, frac).reshape([int(s) for s in shape]))
        key = (array.tobytes(), array.shape, dtype, frac)
        if key not in self.kept:
            held = self.declare(near or self.near + ".constant", shape, dtype, frac)
            file = f"arrays/{held.name}.npy"
            self.tensors[held.name].update({"file": file})
            self.arrays[file] = array
            self.kept[key] = held
        return self.kept[key]

    def slice(self, x: Held, start: Sequence[int], end: Sequence[int]) -> Held:
        """A view of the elements from `start` to before `end`."""
        shape = tuple(e - s for s, e in zip(start, end))
        if shape == x.shape:
            return x
        name = self.fresh(x.name + ".part")
        self.operations.append({"view": name, "of": x.name, "from": list(start), "to": list(end)})
        return Held(name, shape, x.dtype, x.frac, dense=False)

    def shaped(self, x: Held, shape: Sequence[int]) -> Held:
        """A view in another shape: C stays, and N too where C is above 1."""
        extents = tuple(int(extent) for extent in shape)
        if extents == x.shape:
            return x
        assert x.dense and x.shape[1] == extents[1] and (extents[1] == 1 or x.shape[0] == extents[0]), (x, extents)
        assert np.prod(extents) == np.prod(x.shape), (x, extents)
        name = self.fresh(x.name + ".shape")
        self.operations.append({"view": name, "of": x.name, "shape": list(extents)})
        return replace(x, name=name, shape=extents)

    def formatted(self, x: Held, frac: int) -> Held:
        """A view with other frac_bits: each number times 2^(x.frac - frac)."""
        if frac == x.frac:
            return x
        name = self.fresh(x.name + ".format")
        self.operations.append({"view": name, "of": x.name, "frac_bits": frac})
        return replace(x, name=name, frac=frac)

    # ---- operations ----

    def run(self, kernel: str, /, **given: Optional[Given]) -> None:
        """A kernel: tensors by role (`in_` for in), parameters by name. What is None is left out."""
        operation: dict[str, Any] = {"run": kernel}
        for word, value in given.items():
            if value is None:
                continue
            role = word.rstrip("_")
            if isinstance(value, Held):
                operation[role] = value.name
            elif isinstance(value, list) and value and isinstance(value[0], Held):
                operation[role] = [one.name for one in value if isinstance(one, Held)]
            elif isinstance(value, (int, str, np.integer)):
                operation[role] = value if isinstance(value, str) else int(value)
            else:
                assert isinstance(value, Sequence)
                operation[role] = [
                    one if isinstance(one, str) else int(one) for one in value if not isinstance(one, Held)
                ]
        if self.label:
            operation["name"] = self.label
        self.operations.append(operation)

    def copy(self, to: Held, source: Held) -> None:
        self.operations.append({"copy": to.name, "from": source.name})

    def fill(self, to: Held, integer: int) -> None:
        self.operations.append({"fill": to.name, "value": int(integer)})

    def read(self, x: Held, file: str, shape: Sequence[int]) -> None:
        """Of an output, into a file of the model's shape."""
        self.operations.append({"read": x.name, "file": file, "dequantize": True, "shape": [int(one) for one in shape]})

    # ---- files ----

    def document(self) -> dict[str, Any]:
        used = {name for name, one in self.tensors.items() if one.get("quantize")}  # an input stays, also if unused
        for one in self.operations:
            for value in one.values():
                used.update(value if isinstance(value, list) and value and isinstance(value[0], str) else [])
                used.add(value) if isinstance(value, str) else None
            used.update(part["tensor"] for part in (*one.get("reads", ()), *one.get("writes", ())))
        tensors = {name: one for name, one in self.tensors.items() if name in used}
        return {"name": plain(self.name), "rounding": "convergent", "tensors": tensors, "operations": self.operations}

    def text(self) -> str:
        """The document as JSON, a tensor or operation a line."""
        whole = self.document()
        tensors = ",\n".join(f"  {json.dumps(name)}: {json.dumps(one)}" for name, one in whole["tensors"].items())
        operations = ",\n".join(f"  {json.dumps(one)}" for one in whole["operations"])
        head = f'{{"name": {json.dumps(whole["name"])}, "rounding": {json.dumps(whole["rounding"])},'
        return f'{head}\n "tensors": {{\n{tensors}}},\n "operations": [\n{operations}]}}\n'

    def write(self, folder: str) -> None:
        """network.json and the arrays that it names, into a folder that is there."""
        whole = self.document()
        named = {one["file"] for one in whole["tensors"].values() if one.get("file") in self.arrays}
        named.update(file for one in whole["operations"] for file in one.get("constants", {}).values())
        for file in sorted(named):
            path = os.path.join(folder, file)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            np.save(path, self.arrays[file])
        with open(os.path.join(folder, "network.json"), "w", encoding="utf-8") as out:
            out.write(self.text())
