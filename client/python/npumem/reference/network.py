"""A network file (JSON, as npumemctl submit takes it), run by the specification."""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass, field
from typing import Any, Optional, Union

import numpy as np

from .integers import Array
from .kernels import PARAMETERS, ROLES, Result, run
from .tensor import Format, Shape, Tensor, need, shape4, tensor

Json = dict[str, Any]


@dataclass(eq=False)
class Memory:
    """A tensor of a network, or a view: which elements of a flat array it has."""

    form: Format
    data: Array  # of the root
    index: Array  # [N,C,H,W], or [rows, cols]: into data

    @property
    def values(self) -> Array:
        return self.data[self.index]

    @property
    def shape(self) -> Shape:
        return shape4(self.index.shape)

    def tensor(self) -> Tensor:
        return Tensor(self.form.dtype, self.form.frac_bits, self.shape, self.values.reshape(self.shape))

    def write(self, values: Array) -> None:
        need(values.size == self.index.size, f"{values.size} elements for a tensor of {list(self.index.shape)}")
        self.data[self.index] = values.reshape(self.index.shape)


@dataclass
class Network:
    """The results of a network's run.

    tensors      by name, with their last elements, also those that were freed
    results      a name and a Result for each run, in order
    differences  texts: the differences from the arrays that the file expects
    reads        by file name, the arrays that the file would write"""

    tensors: dict[str, Tensor] = field(default_factory=dict)
    results: list[tuple[str, Result]] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    reads: dict[str, Array] = field(default_factory=dict)


class Runner:
    def __init__(self, path: Union[str, os.PathLike[str]]) -> None:
        with open(path, encoding="utf-8") as file:
            self.whole: Json = json.load(file)
        self.folder = os.path.dirname(os.fspath(path))
        self.rounding = str(self.whole.get("rounding", "convergent"))
        self.memory: dict[str, Memory] = {}
        self.expected: list[tuple[str, Json]] = []
        self.network = Network()

    # ---- tensors ----

    def load(self, one: Json, form: Format, file: str) -> Array:
        """The elements of a .npy file."""
        values = np.load(os.path.join(self.folder, file))
        if one.get("perm"):
            values = values.transpose(one["perm"])
        need(values.dtype.kind != "f" or form.dtype == "fp32" or bool(one.get("quantize")), f"{file} holds floats")
        loaded = tensor(values.reshape(-1), form.dtype, form.frac_bits, one.get("rounding", self.rounding))
        return loaded.values.reshape(-1)

    def declare(self, name: str, one: Json) -> None:
        form = Format(one["dtype"], one.get("frac_bits"))
        shape = (one["rows"], one["cols"]) if one.get("layout") == "matrix" else tuple(one["shape"])
        index = np.arange(int(np.prod(shape))).reshape(shape)
        data = np.zeros(index.size, np.float32 if form.dtype == "fp32" else np.int64)
        memory = self.memory[name] = Memory(form, data, index)
        if "file" in one:
            memory.write(self.load(one, form, one["file"]))
        elif "fill" in one:
            self.fill(memory, one["fill"])
        if "expect" in one:
            self.expected.append((name, one))

    @staticmethod
    def fill(memory: Memory, value: Union[int, float]) -> None:
        need(isinstance(value, int) or memory.form.dtype == "fp32", f"filled with an integer, not with {value}")
        filled = tensor(np.array([value]), memory.form.dtype, memory.form.frac_bits)
        memory.data[memory.index] = filled.values.reshape(-1)[0]

    def view(self, one: Json) -> None:
        base = self.memory[one["of"]]
        form, index = base.form, base.index
        if "frac_bits" in one:
            form = dataclasses.replace(form, frac_bits=one["frac_bits"])
        elif "shape" in one:
            index = base.index.reshape(one["shape"])
        else:
            index = base.index[tuple(slice(first, end) for first, end in zip(one["from"], one["to"]))]
        self.memory[one["view"]] = Memory(form, base.data, index)

    def compare(self, name: str, one: Json, file: str) -> None:
        memory = self.memory[name]
        is_ = memory.values.reshape(-1)
        want = self.load(one, memory.form, file)[: is_.size]  # of several samples the first
        wrong = np.flatnonzero(want != is_)
        if wrong.size:
            at = int(wrong[0])
            self.network.differences.append(
                f"{name}: {wrong.size} elements differ from {file}, the first is number {at}: {is_[at]}, not {want[at]}"
            )

    # ---- operations ----

    def run(self, one: Json) -> None:
        kernel = one["run"]
        roles = {role.strip(">?*"): role for role in ROLES[kernel]}
        given: dict[str, Any] = {} if kernel.startswith("packed_") else {"rounding": self.rounding}
        outputs: dict[str, Memory] = {}
        families: dict[str, list[tuple[int, Tensor]]] = {}
        for key, value in one.items():
            family = key.rstrip("0123456789")
            if key in PARAMETERS[kernel]:
                given[key] = tuple(value) if isinstance(value, list) else value
            elif key in roles and roles[key].startswith(">"):
                outputs[key] = self.memory[value]
                given[key] = Format(outputs[key].form.dtype, outputs[key].form.frac_bits, outputs[key].shape)
            elif key in roles and isinstance(value, list):
                given[key + "_"] = [self.memory[name].tensor() for name in value]
            elif roles.get(family, "").endswith("*"):
                families.setdefault(family, []).append((int(key[len(family) :] or 0), self.memory[value].tensor()))
            elif key in roles:
                given[key + "_"] = self.memory[value].tensor()
        for family, members in families.items():
            given[family + "_"] = [member for _, member in sorted(members, key=lambda pair: pair[0])]
        result = run(kernel, **given)
        for role, memory in outputs.items():
            memory.write(result.outputs[role].values)
        self.network.results.append((str(one.get("name", kernel)), result))

    def operation(self, one: Json) -> None:
        if "parallel" in one:
            for part in one["parallel"]:
                self.operation(part)
        elif "alloc" in one:
            self.declare(one["alloc"], one)
        elif "view" in one:
            self.view(one)
        elif "write" in one:
            memory = self.memory[one["write"]]
            memory.write(self.load(one, memory.form, one["file"]))
        elif "fill" in one:
            self.fill(self.memory[one["fill"]], one["value"])
        elif "copy" in one:
            self.memory[one["copy"]].write(self.memory[one["from"]].values)
        elif "run" in one:
            self.run(one)
        elif "read" in one:
            self.network.reads[one["file"]] = self.memory[one["read"]].values.copy()
        elif "expect" in one:
            self.compare(one["expect"], one, one["file"])
        else:
            need("free" in one or "seal" in one, f"no operation without a device: {', '.join(one)}")

    def all(self) -> Network:
        for name, one in self.whole.get("tensors", {}).items():
            self.declare(name, one)
        for one in self.whole["operations"]:
            self.operation(one)
        for name, one in self.expected:
            self.compare(name, one, one["expect"])
        self.network.tensors = {name: memory.tensor() for name, memory in self.memory.items()}
        return self.network


def network(path: Union[str, os.PathLike[str]], rounding: Optional[str] = None) -> Network:
    """Runs a network file. `rounding` replaces the file's rounding for runs that have none. Operations that open tensors
    of a daemon are refused. Views, parallel groups and .npy files work as in npumemctl submit. Elements that were never
    written are 0. Nothing is written to disk."""
    runner = Runner(path)
    runner.rounding = rounding or runner.rounding
    return runner.all()
